"""Planted bugs in background work: lost, repeated and unwanted reports."""

from typing import Any

from hark.engine.session import decide
from hark.engine.session.session import Session
from hark.engine.session.state import SessionState
from hark.engine.turn.turn import Turn
from hark.protocol.commands import Interrupt
from hark.protocol.messages import CallResult, Effect
from hark.protocol.records import AnyRecord
from tests.simulation.mutants.mutant import Mutant, do_nothing

_on_stop = decide.on_stop


def _record_nothing(*_: Any, **__: Any) -> list[AnyRecord]:
    return []


def _wake_without_limit(self: Any, max_wake_ups: int) -> bool:
    return not self.are_wake_ups_held and not self.is_held and bool(self.waking_reports)


def _hold_only_for_recorded_work(state: SessionState, context: decide.DecisionContext) -> list[AnyRecord]:
    return _on_stop(state, context) if state.work or state.reports else []


def _always_allow_wake_ups(self: Any, inbox: int, messages: Any) -> None:
    self.wake_ups, self.are_wake_ups_held = 0, False


def _add_ended_child(self: Any, result: CallResult) -> None:
    if result.effect is Effect.CONTINUES:
        self.work[result.call] = ""


def _continue_children(self: Any, interrupt: Interrupt) -> None:
    if self._interrupt is None:
        self._interrupt = interrupt
        self._io.is_cut_by_message = True
        self._timeline.mark_interrupt()
        self._scope.cancel()


MUTANTS = (
    Mutant("The end of background work wakes nothing", ((Session, "_act_after", do_nothing),)),
    Mutant("Work that a crash ended is not reported", ((decide, "end_all_work", _record_nothing),)),
    Mutant("A report stays pending after it was delivered", ((SessionState, "_remove_reports", do_nothing),)),
    Mutant("Wake-ups have no limit", ((SessionState, "can_wake", _wake_without_limit),)),
    Mutant("A stop does not hold wake-ups", ((decide, "on_stop", _record_nothing),)),
    Mutant("Every started turn allows wake-ups again", ((SessionState, "_mark_user_message", _always_allow_wake_ups),)),
    Mutant("A stop ignores work that starts later", ((decide, "on_stop", _hold_only_for_recorded_work),)),
    Mutant("A child that ended before its call runs forever", ((SessionState, "_add_child", _add_ended_child),)),
    Mutant("A reset keeps the conversation", ((SessionState, "_reset", do_nothing),)),
    Mutant("A stop leaves children running", ((Turn, "interrupt", _continue_children),)),
)
