"""Planted bugs in stop requests: a stop ends the wrong turn, causes retries, waits too long, or drops text."""

import asyncio
from typing import Any

from hark.engine.session.in_flight import InFlightMessages
from hark.engine.session.session import Session
from hark.engine.turn.calls import CallRunner
from hark.engine.turn.model_calls import ModelCalls
from hark.engine.turn.step import StepRunner
from hark.engine.turn.turn import Turn
from hark.protocol.commands import Interrupt
from hark.protocol.outcomes import Interrupted, Timings
from hark.protocol.provider import TransientProviderError
from hark.protocol.receipts import Settled
from hark.protocol.records import TurnStarted
from tests.simulation.mutants.mutant import Mutant, do_nothing

_interrupt = Session.interrupt
_append = Session._append
_stream = ModelCalls._stream
_settle = Turn.settle
_turn_interrupt = Turn.interrupt
_cancel_running = CallRunner._cancel_running


def _store_interrupt_flag(self: Any, interrupt: Interrupt) -> Turn | None:
    turn = _interrupt(self, interrupt)
    if turn is None and not interrupt.turn:
        self.state.flag = interrupt
    return turn


def _interrupt_turn_if_flagged(self: Any, *records: Any) -> Any:
    done = _append(self, *records)
    flag = self.state.__dict__.pop("flag", None) if any(isinstance(one, TurnStarted) for one in records) else None
    if flag is not None:
        self._last_turn().interrupt(flag)
    return done


def _interrupt_any_turn(self: Any, interrupt: Interrupt) -> Turn | None:
    return _interrupt(self, Interrupt(interrupt.id, interrupt.source, "", interrupt.shown))


async def _retry_interrupted(self: Any, route: Any, request: Any) -> Any:
    try:
        return await _stream(self, route, request)
    except asyncio.CancelledError:
        raise TransientProviderError("connection lost") from None


async def _wait_for_calls(self: Any) -> None:
    running = self._running
    for one in running:
        one.task.cancel()
    if running:
        await asyncio.wait([one.task for one in running])
    await _cancel_running(self)


def _settle_at_once(self: Any, interrupt: Interrupt) -> None:
    _turn_interrupt(self, interrupt)
    if not self.settled.done():
        _settle(self, Settled(self.id, Interrupted(interrupt.source), Timings()))


def _return_no_messages(*_: Any) -> list[Any]:
    return []


MUTANTS = (
    Mutant(
        "A stop without a running turn leaves a flag that kills the next turn",
        ((Session, "interrupt", _store_interrupt_flag), (Session, "_append", _interrupt_turn_if_flagged)),
    ),
    Mutant("A stop that names a turn ends any running turn", ((Session, "interrupt", _interrupt_any_turn),)),
    Mutant("A stop does not reach a message in flight", ((InFlightMessages, "interrupt", _return_no_messages),)),
    Mutant(
        "A cancelled request looks like a lost connection and is retried",
        ((ModelCalls, "_stream", _retry_interrupted),),
    ),
    Mutant("A stop waits for a tool that ignores cancellation", ((CallRunner, "_cancel_running", _wait_for_calls),)),
    Mutant("A stop is acknowledged while the turn still runs", ((Turn, "interrupt", _settle_at_once),), first_seed=140),
    Mutant("The partial reply is dropped", ((StepRunner, "partial_record", do_nothing),)),
)
