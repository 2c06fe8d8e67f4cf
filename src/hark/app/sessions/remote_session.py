"""Somebody who stands before a session that another process may own."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hark.app.clock import SystemClock
from hark.engine.session.arrivals import Arrivals
from hark.engine.session.decide import Moment, on_queue_command
from hark.engine.session.fanout import Fanout
from hark.engine.session.follower import Follower
from hark.engine.session.preview import preview
from hark.engine.session.receipts import queue_items
from hark.protocol.commands import Interrupt, QueueCommand, Say
from hark.protocol.names import DRAINING, check_name
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.records import Refused
from hark.protocol.store import Store, StoreError

POLL_SECONDS = 0.01
OWNER_SECONDS = 10.0
DRAINING_SECONDS = 0.3  # the session may be another process's, which answers well within this

T = TypeVar("T")


class Caller:
    """Never becomes the owner: with nobody there, a command waits in the inbox for the next one."""

    def __init__(self, session: str, store: Store) -> None:
        self._store = store
        self._guest = Follower(check_name(session), store)
        self._arrivals = Arrivals()
        self._fanout = Fanout(session, SystemClock())

    async def say(self, say: Say) -> Receipt:
        """Put a message in; return what its owner made of it, or that it waits for one."""
        is_owned = await self._look()
        arrival = self._arrivals.add(say.id)
        accepted = await self._store.inbox.put(self._guest.id, say)
        if not accepted.is_new:
            return Receipt(say.id, self._guest.id, ReceiptState.DUPLICATE)
        arrival.accepted()
        await self._store.bus.wake(self._guest.id)
        if not is_owned:
            return await self._waiting(say)
        if not await self.is_draining():
            return await self._followed(arrival.receipt())
        try:
            return await self._answered(arrival.receipt(), DRAINING_SECONDS)
        except TimeoutError:
            return await self._waiting(say)  # its owner ends, and takes nothing more

    async def is_draining(self) -> bool:
        """Tell whether a gateway of this home is about to end: it takes nothing more."""
        return await self._store.leases.is_owned(DRAINING)

    async def interrupt(self, interrupt: Interrupt) -> Settled | None:
        """Have the owner end its running turn; None when nothing runs."""
        if not await self._look():
            return None
        running = self._guest.state.turn
        aimed = Interrupt(interrupt.id, interrupt.source, running.id if running else "", interrupt.shown)
        return await self._followed(self._guest.interrupt(aimed))

    async def change(self, command: QueueCommand) -> Refusal | None:
        """Change the queue; return why not."""
        if await self._look():
            return await self._followed(self._guest.change(command))
        state = await preview(self._store, self._guest.id)
        record = on_queue_command(state, command, Moment(0.0, self._guest.id))
        if isinstance(record, Refused):
            return Refusal(record.code, record.message)
        await self._guest.send(command)
        return None

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order, with what is still in the inbox."""
        await self._look()
        return queue_items(self._guest.id, await preview(self._store, self._guest.id))

    async def _look(self) -> bool:
        """Read the journal; tell whether a live process owns the session."""
        await self._guest.follow(self._arrivals, self._fanout)
        return await self._store.leases.is_owned(self._guest.id)

    async def _waiting(self, say: Say) -> Receipt:
        return Receipt(say.id, self._guest.id, ReceiptState.QUEUED, position=len(await self.queue()))

    async def _followed(self, answer: Coroutine[Any, Any, T]) -> T:
        """Wait for the owner's answer, reading along in its journal.

        Raises:
            StoreError: The owner lives but does not answer.
        """
        try:
            return await self._answered(answer, OWNER_SECONDS)
        except TimeoutError as error:
            raise StoreError(
                f"The process that owns {self._guest.id} has not answered for {OWNER_SECONDS:g} s. What you sent is "
                "kept and will be taken when it goes on, or by the next owner."
            ) from error

    async def _answered(self, answer: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for the owner's answer, so long; raises TimeoutError behind that."""
        asking = asyncio.ensure_future(answer)
        try:
            async with asyncio.timeout(seconds):
                while not asking.done():
                    await asyncio.wait([asking], timeout=POLL_SECONDS)
                    await self._guest.follow(self._arrivals, self._fanout)
                return asking.result()
        finally:
            asking.cancel()
