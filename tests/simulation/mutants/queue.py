"""Planted bugs in the queue: messages are lost, duplicated, deleted, stuck or reordered."""

import asyncio
from typing import Any

from hark.engine.session.queue_rule import QueuedMessage
from hark.engine.session.session import Session, decide
from hark.engine.session.state import SessionState
from hark.engine.turn.step import StepRunner
from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import UserMessage
from hark.protocol.records import CommandHandled, Queued, QueueReleased, TurnStarted
from tests.simulation.mutants.mutant import Mutant

_on_say = decide.on_say
_on_load = decide.on_load
_session_say = Session._process_say
_queue = SessionState._queue


def _acknowledge_early(self: Any, say: Say, context: decide.DecisionContext) -> None:
    self._append(CommandHandled(command=say.id, inbox=context.inbox, at=context.at))

    async def append_later() -> None:
        await asyncio.sleep(0.005)
        if not self._is_closing:
            _session_say(self, say, decide.DecisionContext(context.at, context.session))

    self.state.taking = asyncio.create_task(append_later())


async def _drop_steers(self: Any) -> None:
    self._journal.state._dequeue(tuple(message.id for message in self._journal.state.pending_steers()))
    self._io.steering.clear()


def _rerun_crashed_turn(state: SessionState, context: decide.DecisionContext) -> list[Any]:
    records = _on_load(state, context)
    if state.turn is None:
        return records
    last_prompt = [one for one in state.transcript.messages if isinstance(one, UserMessage)][-1:]
    turn = f"{context.session}.t{state.turns + 1}"
    return [
        *(one for one in records if not isinstance(one, TurnStarted)),
        TurnStarted(turn=turn, messages=tuple(last_prompt)),
    ]


def _keep_last_only(self: Any, record: Queued) -> None:
    self.queue = [QueuedMessage(record.message, record.delivery, record.turn)]


def _clear_on_interrupt(self: Any, record: Queued) -> None:
    if record.delivery is Delivery.INTERRUPT:
        self.queue = []
    _queue(self, record)


def _never_release_held(
    state: SessionState, say: Say, context: decide.DecisionContext, *, is_stopped: bool = False
) -> list[Any]:
    records = _on_say(state, say, context, is_stopped=is_stopped)
    if not state.is_held or not any(isinstance(one, Queued) for one in records):
        return records
    return [one for one in records if not isinstance(one, QueueReleased | TurnStarted)]


def _overtake_held(
    state: SessionState, say: Say, context: decide.DecisionContext, *, is_stopped: bool = False
) -> list[Any]:
    if state.turn is None and say.delivery is Delivery.INTERRUPT and not is_stopped:
        start = decide._start_turn(state, (UserMessage(say.id, say.text, say.author),), context)
        return [QueueReleased(at=context.at), start] if state.is_held else [start]
    return _on_say(state, say, context, is_stopped=is_stopped)


def _queue_steers_last(message: str, delivery: Delivery, *, has_turn: bool) -> bool:
    return delivery is Delivery.INTERRUPT


async def _end_with_next_turn(self: Any, records: list[Any]) -> None:
    if not self._is_closing:
        records = decide.on_end(self.state, records, self._context())
    await self._append(*records)


def _start_nothing(state: SessionState, context: decide.DecisionContext) -> list[Any]:
    return []


MUTANTS = (
    Mutant("A message is acknowledged before it is in the journal", ((Session, "_process_say", _acknowledge_early),)),
    Mutant("A steer is removed from the queue and lost", ((StepRunner, "_accept_steers", _drop_steers),)),
    Mutant("A turn that a crash left open runs again", ((decide, "on_load", _rerun_crashed_turn),)),
    Mutant("The queue has one slot, and the last message wins", ((SessionState, "_queue", _keep_last_only),)),
    Mutant("An interrupting message wipes the queue", ((SessionState, "_queue", _clear_on_interrupt),)),
    Mutant("A steer that its turn did not take runs last", ((decide, "goes_first", _queue_steers_last),)),
    Mutant(
        "A queued message starts before the last steer is read",
        ((Session, "_end_turn", _end_with_next_turn),),
        first_seed=430,
    ),
    Mutant("A loaded session waits for the next message before it runs", ((decide, "on_ready", _start_nothing),)),
    Mutant("Messages held by a stop are never released", ((decide, "on_say", _never_release_held),)),
    Mutant(
        "An interrupting message overtakes an earlier held one", ((decide, "on_say", _overtake_held),), first_seed=195
    ),
)
