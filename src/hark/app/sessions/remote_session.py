"""A client for a session that another process may own."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hark.app.clock import SystemClock
from hark.engine.session.decide_changes import on_queue_command
from hark.engine.session.decision_context import DecisionContext
from hark.engine.session.fanout import Fanout
from hark.engine.session.follower import Follower
from hark.engine.session.in_flight import InFlightMessages
from hark.engine.session.preview import preview_state
from hark.engine.session.queue_rule import why_full
from hark.engine.session.receipts import queue_items
from hark.protocol.commands import Interrupt, QueueCommand, Say
from hark.protocol.names import DRAINING, check_session_name
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.records import CommandRefused
from hark.protocol.rules import Limits
from hark.protocol.store import Store, StoreError

POLL_SECONDS = 0.01
OWNER_SECONDS = 10.0
DRAINING_SECONDS = 0.3  # the owner may be another process, which answers well within this time

T = TypeVar("T")


class RemoteSession:
    """A client that never owns the session. Its commands wait in the inbox while no process owns the session."""

    def __init__(self, session: str, store: Store) -> None:
        self._store = store
        self._follower = Follower(check_session_name(session), store)
        self._in_flight = InFlightMessages()
        self._fanout = Fanout(session, SystemClock())

    async def say(self, say: Say, limits: Limits | None = None) -> Receipt:
        """Enqueue a message. Return the owner's receipt, or "queued" if no process owns the session."""
        is_owned = await self._refresh()
        state = self._follower.state if is_owned else await preview_state(self._store, self._follower.id)
        is_queued = state.turn is not None or bool(state.queue)
        reason = why_full(state.queue, say.text, say.attachments, limits or Limits()) if is_queued else ""
        if reason and state.find_queued(say.id) is None:
            return Receipt(say.id, self._follower.id, ReceiptState.REFUSED, reason=reason)
        in_flight = self._in_flight.add(say.id)
        accepted = await self._store.inbox.put(self._follower.id, say)
        if not accepted.is_new:
            return Receipt(say.id, self._follower.id, ReceiptState.DUPLICATE)
        in_flight.mark_accepted()
        await self._store.bus.wake(self._follower.id)
        if not is_owned:
            return await self._queued_receipt(say)
        if not await self.is_draining():
            return await self._wait_for_owner(in_flight.wait_for_receipt())
        try:
            return await self._wait_for_answer(in_flight.wait_for_receipt(), DRAINING_SECONDS)
        except TimeoutError:
            return await self._queued_receipt(say)  # the owner is stopping and accepts no more messages

    async def is_draining(self) -> bool:
        """Return whether a gateway for this home is draining and accepts no more messages."""
        return await self._store.leases.is_owned(DRAINING)

    async def interrupt(self, interrupt: Interrupt) -> Settled | None:
        """Ask the owner to stop its running turn. Return None if no turn is running."""
        if not await self._refresh():
            return None
        running = self._follower.state.turn
        targeted = Interrupt(interrupt.id, interrupt.source, running.id if running else "", interrupt.shown)
        return await self._wait_for_owner(self._follower.interrupt(targeted))

    async def change_queue(self, command: QueueCommand) -> Refusal | None:
        """Change the queue. Return a refusal if that is not possible."""
        if await self._refresh():
            return await self._wait_for_owner(self._follower.change(command))
        state = await preview_state(self._store, self._follower.id)
        record = on_queue_command(state, command, DecisionContext(0.0, self._follower.id))
        if isinstance(record, CommandRefused):
            return Refusal(record.code, record.message)
        await self._follower.send(command)
        return None

    async def queue(self) -> list[QueueItem]:
        """Return the queued messages, in running order, including those still in the inbox."""
        await self._refresh()
        return queue_items(self._follower.id, await preview_state(self._store, self._follower.id))

    async def _refresh(self) -> bool:
        """Read the journal. Return whether a live process owns the session."""
        await self._follower.follow(self._in_flight, self._fanout)
        return await self._store.leases.is_owned(self._follower.id)

    async def _queued_receipt(self, say: Say) -> Receipt:
        return Receipt(say.id, self._follower.id, ReceiptState.QUEUED, position=len(await self.queue()))

    async def _wait_for_owner(self, answer: Coroutine[Any, Any, T]) -> T:
        """Wait for the owner's response, and follow its journal meanwhile.

        Raises:
            StoreError: The owner is alive but does not respond.
        """
        try:
            return await self._wait_for_answer(answer, OWNER_SECONDS)
        except TimeoutError as error:
            raise StoreError(
                f"The process that owns {self._follower.id} has not answered for {OWNER_SECONDS:g} s. Your command is "
                "saved; that process or the next owner will execute it."
            ) from error

    async def _wait_for_answer(self, answer: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for the owner's response. Raises TimeoutError after `seconds`."""
        task = asyncio.ensure_future(answer)
        try:
            async with asyncio.timeout(seconds):
                while not task.done():
                    await asyncio.wait([task], timeout=POLL_SECONDS)
                    await self._follower.follow(self._in_flight, self._fanout)
                return task.result()
        finally:
            task.cancel()
