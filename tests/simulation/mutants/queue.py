"""Bugs of the queue: messages get lost, doubled, wiped, stuck or out of order."""

import asyncio
from typing import Any

from hark.engine.session.queue_rule import Waiting
from hark.engine.session.session import Session, decide
from hark.engine.session.state import SessionState
from hark.engine.turn.step import Steps
from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import UserMessage
from hark.protocol.records import Handled, Queued, Released, TurnStarted
from tests.simulation.mutants.mutant import Mutant

_on_say = decide.on_say
_on_load = decide.on_load
_session_say = Session._say
_queue = SessionState._queue


def _drain_first(self: Any, say: Say, moment: decide.Moment) -> None:
    self._append(Handled(command=say.id, inbox=moment.inbox, at=moment.at))

    async def take() -> None:
        await asyncio.sleep(0.005)
        if not self._is_closing:
            _session_say(self, say, decide.Moment(moment.at, moment.session))

    self.state.taking = asyncio.create_task(take())


async def _drop_steers(self: Any) -> None:
    self._log.state._take(tuple(message.id for message in self._log.state.steers()))
    self._lines.steering.clear()


def _run_again(state: SessionState, moment: decide.Moment) -> list[Any]:
    records = _on_load(state, moment)
    if state.turn is None:
        return records
    asked = [one for one in state.transcript.messages if isinstance(one, UserMessage)][-1:]
    turn = f"{moment.session}.t{state.turns + 1}"
    return [
        *(one for one in records if not isinstance(one, TurnStarted)),
        TurnStarted(turn=turn, messages=tuple(asked)),
    ]


def _one_slot(self: Any, record: Queued) -> None:
    self.queue = [Waiting(record.message, record.delivery, record.turn)]


def _wipe(self: Any, record: Queued) -> None:
    if record.is_first:
        self.queue = []
    _queue(self, record)


def _never_release(state: SessionState, say: Say, moment: decide.Moment, *, is_stopped: bool = False) -> list[Any]:
    records = _on_say(state, say, moment, is_stopped=is_stopped)
    if not state.is_held or not any(isinstance(one, Queued) for one in records):
        return records
    return [one for one in records if not isinstance(one, Released | TurnStarted)]


def _jump(state: SessionState, say: Say, moment: decide.Moment, *, is_stopped: bool = False) -> list[Any]:
    if state.turn is None and say.delivery is Delivery.INTERRUPT and not is_stopped:
        start = decide._start(state, (UserMessage(say.id, say.text, say.author),), moment)
        return [Released(at=moment.at), start] if state.is_held else [start]
    return _on_say(state, say, moment, is_stopped=is_stopped)


MUTANTS = (
    Mutant("The inbox is drained before the message is in the journal", ((Session, "_say", _drain_first),)),
    Mutant("A steer is taken from the queue, and put nowhere", ((Steps, "_take_steers", _drop_steers),)),
    Mutant("A turn that a crash left open is run again", ((decide, "on_load", _run_again),)),
    Mutant("The queue has one slot, and the last message wins", ((SessionState, "_queue", _one_slot),)),
    Mutant("An interrupting message wipes the queue", ((SessionState, "_queue", _wipe),)),
    Mutant("What a stop held is never released", ((decide, "on_say", _never_release),)),
    Mutant("An interrupting message runs before an earlier one that is held", ((decide, "on_say", _jump),), near=195),
)
