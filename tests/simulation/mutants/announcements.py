"""Bugs of telling: too early, or never."""

from typing import Any

from hark.engine.session import follower as guest_module
from hark.engine.session.follower import Follower
from hark.engine.session.log import Log
from tests.simulation.mutants.mutant import Mutant, nothing

_append = Log.append


def _tell_at_once(self: Any, *records: Any) -> Any:
    done = _append(self, *records)
    for batch in self._pending:
        news, batch.news = batch.news, []
        for record, announced in news:
            for told in self._told:
                told(record, announced)
    return done


def _is_not(_: Any) -> bool:
    return False


MUTANTS = (
    Mutant("People are told before it is durable", ((Log, "append", _tell_at_once),)),
    Mutant("A guest who comes late hears no receipt", ((guest_module, "tell_receipts", nothing),), near=235),
    Mutant("An heir forgets who had asked the owner before it", ((Follower, "is_asking", property(_is_not)),)),
)
