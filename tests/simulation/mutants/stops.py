"""Bugs of stops: they hit the wrong turn, are retried, wait too long, or drop what was said."""

import asyncio
from typing import Any

from hark.engine.session.arrivals import Arrivals
from hark.engine.session.session import Session
from hark.engine.turn.calls import Calls
from hark.engine.turn.model_calls import ModelCalls
from hark.engine.turn.step import Steps
from hark.engine.turn.turn import Turn
from hark.protocol.commands import Interrupt
from hark.protocol.outcomes import Interrupted, Timings
from hark.protocol.provider import TransientProviderError
from hark.protocol.receipts import Settled
from hark.protocol.records import TurnStarted
from tests.simulation.mutants.mutant import Mutant, nothing

_interrupt = Session.interrupt
_append = Session._append
_stream = ModelCalls._stream
_settle = Turn.settle
_turn_interrupt = Turn.interrupt
_cut = Calls._cut


def _keep_flag(self: Any, interrupt: Interrupt) -> Turn | None:
    turn = _interrupt(self, interrupt)
    if turn is None and not interrupt.turn:
        self.state.flag = interrupt
    return turn


def _read_flag(self: Any, *records: Any) -> Any:
    done = _append(self, *records)
    flag = self.state.__dict__.pop("flag", None) if any(isinstance(one, TurnStarted) for one in records) else None
    if flag is not None:
        self._last_turn().interrupt(flag)
    return done


def _interrupt_any(self: Any, interrupt: Interrupt) -> Turn | None:
    return _interrupt(self, Interrupt(interrupt.id, interrupt.source, "", interrupt.shown))


async def _retry_cut(self: Any, route: Any, request: Any) -> Any:
    try:
        return await _stream(self, route, request)
    except asyncio.CancelledError:
        raise TransientProviderError("connection lost") from None


async def _wait_for_all(self: Any) -> None:
    running = self._running
    for one in running:
        one.task.cancel()
    if running:
        await asyncio.wait([one.task for one in running])
    await _cut(self)


def _settle_at_once(self: Any, interrupt: Interrupt) -> None:
    _turn_interrupt(self, interrupt)
    if not self.settled.done():
        _settle(self, Settled(self.id, Interrupted(interrupt.source), Timings()))


def _meet_nothing(*_: Any) -> list[Any]:
    return []


MUTANTS = (
    Mutant(
        "A stop that meets nothing leaves a flag, which kills the next turn",
        ((Session, "interrupt", _keep_flag), (Session, "_append", _read_flag)),
    ),
    Mutant("A stop that names a turn ends whichever runs", ((Session, "interrupt", _interrupt_any),)),
    Mutant("A stop does not reach a message that is on its way", ((Arrivals, "interrupt", _meet_nothing),)),
    Mutant("Our own close looks like a lost connection, and is retried", ((ModelCalls, "_stream", _retry_cut),)),
    Mutant("A stop waits for a tool that resists", ((Calls, "_cut", _wait_for_all),)),
    Mutant("Stopped is said while the turn still runs", ((Turn, "interrupt", _settle_at_once),), near=140),
    Mutant("What was said before the cut is dropped", ((Steps, "partial", nothing),)),
)
