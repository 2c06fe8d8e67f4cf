"""Bugs of calls: left open, started too early, or heard of too late."""

from collections.abc import Callable
from typing import Any

from hark.engine.session.log import Log
from hark.engine.turn import turn as turn_module
from hark.engine.turn.calls import Calls
from hark.protocol.messages import Call, UserMessage
from hark.protocol.records import CallStarted, Steered
from tests.simulation.mutants.mutant import Mutant, nothing

_append = Log.append


def _late_into_transcript(self: Any, call: Call) -> Callable[[Any], None]:
    def record(output: Any) -> None:
        late = UserMessage(f"late {call.id}", output.text)
        self._log.append(Steered(turn=self._lines.turn, step=0, messages=(late,)))

    return record


def no_results(*_: Any) -> list[Any]:
    return []


class _Done:
    """A write that nobody waits for."""

    def __await__(self) -> Any:
        return iter(())


def _start_before_durable(self: Any, *records: Any) -> Any:
    done = _append(self, *records)
    return _Done() if records and isinstance(records[0], CallStarted) else done


MUTANTS = (
    Mutant(
        "Calls that a cut found open get no result",
        ((Calls, "_close_unstarted", nothing), (turn_module, "close_calls", no_results)),
    ),
    Mutant("A late result is written into the transcript", ((Calls, "_late", _late_into_transcript),)),
    Mutant("A tool starts before that is durable", ((Log, "append", _start_before_durable),)),
)
