"""Planted bugs in publishing: events are published too early or never."""

from typing import Any

from hark.engine.session import follower as follower_module
from hark.engine.session.follower import Follower
from hark.engine.session.journal_writer import JournalWriter
from tests.simulation.mutants.mutant import Mutant, do_nothing

_append = JournalWriter.append


def _publish_before_durable(self: Any, *records: Any) -> Any:
    done = _append(self, *records)
    for batch in self._pending:
        announced, batch.announced = batch.announced, []
        for record, announcements in announced:
            for callback in self._durable_callbacks:
                callback(record, announcements)
    return done


def _return_false(_: Any) -> bool:
    return False


MUTANTS = (
    Mutant("Events are published before they are durable", ((JournalWriter, "append", _publish_before_durable),)),
    Mutant("A late follower gets no receipt", ((follower_module, "set_receipts", do_nothing),), first_seed=235),
    Mutant(
        "A new owner forgets the pending commands of the old one",
        ((Follower, "has_pending_commands", property(_return_false)),),
    ),
)
