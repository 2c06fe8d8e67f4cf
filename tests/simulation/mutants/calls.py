"""Planted bugs in tool calls: calls are left open, started too early, or recorded too late."""

from collections.abc import Callable
from typing import Any

from hark.engine.session.journal_writer import JournalWriter
from hark.engine.turn import turn as turn_module
from hark.engine.turn.calls import CallRunner
from hark.protocol.messages import Call, UserMessage
from hark.protocol.records import CallStarted, Steered
from tests.simulation.mutants.mutant import Mutant, do_nothing

_append = JournalWriter.append


def _record_late_result(self: Any, call: Call) -> Callable[[Any], None]:
    def record(output: Any) -> None:
        late = UserMessage(f"late {call.id}", output.text)
        self._journal.append(Steered(turn=self._io.turn, step=0, messages=(late,)))

    return record


def return_no_results(*_: Any) -> list[Any]:
    return []


class _CompletedWrite:
    """A fake write that completes immediately."""

    def __await__(self) -> Any:
        return iter(())


def _start_before_durable(self: Any, *records: Any) -> Any:
    done = _append(self, *records)
    return _CompletedWrite() if records and isinstance(records[0], CallStarted) else done


MUTANTS = (
    Mutant(
        "Calls that are open at an interrupt get no result",
        ((CallRunner, "_close_unstarted", do_nothing), (turn_module, "close_calls", return_no_results)),
    ),
    Mutant(
        "A late result is written into the transcript", ((CallRunner, "_late_result_recorder", _record_late_result),)
    ),
    Mutant("A tool starts before its start record is durable", ((JournalWriter, "append", _start_before_durable),)),
)
