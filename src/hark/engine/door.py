"""The door of a session: commands come in here, whichever process owns it."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio

from hark.engine.arrivals import Arrival, Arrivals
from hark.engine.fanout import Fanout, Subscription
from hark.engine.guest import Guest
from hark.engine.receipts import queue_items
from hark.engine.session import Session
from hark.engine.signal import Signal
from hark.engine.state import SessionState
from hark.engine.text import clean, first_of
from hark.engine.workbench import Workbench
from hark.protocol.commands import Answer, ChooseRoute, Compact, Interrupt, QueueCommand, Say
from hark.protocol.events import Notice
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.store import Entry, Lease, LeaseLost, StoreError

FOLLOW_SECONDS = 0.02
ADOPT_SECONDS = 0.25
RECOVER_SECONDS = 1.0
LOG = logging.getLogger(__name__)
CLOSING = Refusal("closing", "Hark is shutting down.")


class Door:
    """Knows whether this process owns the session; whoever stands in front of it need not."""

    def __init__(self, session: str, bench: Workbench) -> None:
        self.id = session
        self._bench = bench
        self._arrivals = Arrivals()
        self._fanout = Fanout(session, bench.clock)
        self._session: Session | None = None
        self._guest: Guest | None = None
        self._is_known = Signal()
        self._knock = Signal()
        self._is_closing = False
        self._is_over = False
        self._told: int | None = None
        self._failure: StoreError | None = None
        self._users = 0

    @property
    def state(self) -> SessionState:
        """What is known of the session; wait for `known` first."""
        owner = self._session or self._guest
        return owner.state if owner else SessionState()

    @property
    def is_busy(self) -> bool:
        """True when a turn runs here or a message is on its way."""
        return not self._arrivals.is_empty or (self._session is not None and not self._session.is_idle)

    async def known(self) -> None:
        """Return when the session is loaded, here or in the process that owns it."""
        await self._is_known.wait()

    def subscribe(self) -> Subscription:
        """Return the events from now on."""
        return self._fanout.subscribe()

    async def say(self, say: Say) -> Receipt:
        """Accept a message; return what became of it, true and durable.

        Cancelling leaves open whether it was accepted; the same id can be said again.

        Raises:
            StoreError: It could not be accepted.
        """
        say = Say(say.id, clean(say.text), say.delivery, clean(say.author), say.attachments)
        # A task of its own: whoever gives up waiting does not leave a stored message that nobody looks at.
        accepting = asyncio.ensure_future(self._accept(say, self._arrivals.add(say.id)))
        accepting.add_done_callback(_forget)
        return await asyncio.shield(accepting)

    async def _accept(self, say: Say, arrival: Arrival) -> Receipt:
        try:
            accepted = await self._bench.store.inbox.put(self.id, say)
            if not accepted.is_new:
                self.wake()  # it may be one that nobody has looked at yet
                return Receipt(say.id, self.id, ReceiptState.DUPLICATE)
            if self._session is None or not self._session.take(Entry(accepted.seq, say)):
                self.wake()
                await self._bench.store.bus.wake(self.id)
            return await arrival.receipt()
        finally:
            self._arrivals.remove(arrival)
            self._fanout.nudge()

    async def interrupt(self, interrupt: Interrupt) -> Settled | None:
        """End the running turn, its cancel in this very tick; return when it has settled, or None when none ran.

        A message that is on its way in counts as running: it is accepted, and goes no further.
        """
        turn = self._session.interrupt(interrupt) if self._session else None
        met = [] if interrupt.turn else self._arrivals.interrupt(interrupt)
        if turn is not None:
            return await asyncio.shield(turn.settled)
        for arrival in met:
            receipt = await arrival.outcome()
            turn = self._session.turn if self._session else None
            if receipt is not None and turn is not None and turn.id == receipt.turn:
                return await asyncio.shield(turn.settled)
        if met and self._guest is None:
            return None
        async with self._used():
            return await self._interrupt_unknown(interrupt)

    async def change(self, command: QueueCommand | ChooseRoute | Compact) -> Refusal | None:
        """Change the queue or the route, or make room; return why not, or None when it is durable."""
        async with self._used():
            try:
                if self._session is not None:
                    return await self._session.change(command)
                return await self._guest.change(command) if self._guest else self._refusal()
            except StoreError as error:
                return Refusal("store", str(error))

    async def answer(self, answer: Answer) -> Refusal | None:
        """Answer a question; return why not."""
        async with self._used():
            if self._session is not None:
                return self._session.answer(answer)
            return await self._guest.change(answer) if self._guest else self._refusal()

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run.

        Raises:
            StoreError: The session can't be saved at present, so it is not known what will run.
        """
        async with self._used():
            while not self._is_idle() and not self._is_over:
                if self._failure is not None:
                    raise self._failure
                await self._fanout.change()
            return self.state.last_end.outcome if self.state.last_end else None

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        async with self._used():
            return queue_items(self.id, self.state)

    def notice(self, code: str, text: str) -> None:
        """Tell this session's readers something; it lasts no longer than they read."""
        self._fanout.emit(Notice, None, code, text)

    def wake(self) -> None:
        """Say that the inbox may have something new."""
        self._knock.set()

    def close(self) -> None:
        """Settle the running turn, let the session go and end `run`."""
        self._is_closing = True
        if self._session is not None:
            self._session.close()
        self._knock.set()

    # The door's own task.

    async def run(self) -> None:
        """Own the session or follow its owner, until `close`, or until nobody here needs a session of another."""
        try:
            while not self._is_closing:
                try:
                    lease = await self._bench.store.leases.acquire(self.id)
                    if lease is not None:
                        await self._own(lease)
                    elif not await self._visit():
                        return
                except* LeaseLost:
                    pass  # another process has it now: this one becomes its guest
                except* Exception as group:  # noqa: BLE001 the session's boundary: it fails alone, and is opened anew
                    await self._recover(group)
        finally:
            self._is_over = True
            self._arrivals.close(self.id)
            self._fanout.close()
            self._fanout.nudge()
            self._is_known.set()

    async def _own(self, lease: Lease) -> None:
        session = Session(lease, self._bench, self._fanout, self._arrivals)
        guest = self._guest
        try:
            if guest is not None:
                await self._follow(guest)  # the last words of the owner before us
            await session.load(self._told)
            if guest is not None and guest.is_asking:
                session.on_durable(guest.hear)
            self._guest, self._session, self._failure = None, session, None
            if self._is_closing:
                session.close()
            self._is_known.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_inbox, session)
                if session.was_cut:
                    tasks.start_soon(self._tell_last_owner, session)
                await session.run()
                tasks.cancel_scope.cancel()
        finally:
            self._session = None
            self._told = max(self._told or 0, session.told) if session.told else self._told
            if guest is not None and guest.is_asking:
                self._guest = guest  # it still owes somebody an answer
            self._is_known.clear()
            with anyio.move_on_after(RECOVER_SECONDS, shield=True), suppress(StoreError):
                await self._bench.store.leases.release(lease)

    async def _read_inbox(self, session: Session) -> None:
        """Take what others put into the inbox. Wakes may be lost, so it is looked at now and then anyway."""
        while True:
            await self._knock.wait()
            self._knock.clear()
            entries = await self._bench.store.inbox.after(self.id, session.state.cursor)
            for entry in entries:
                session.take(entry)
            if not entries:
                await session.look()

    async def _tell_last_owner(self, session: Session) -> None:
        """Wake whoever ran the turn that was found open: it may live, and have nothing to write that would tell it."""
        await session.flush()
        await self._bench.store.bus.wake(self.id)

    async def _visit(self) -> bool:
        """Follow the owner for a while; False when nobody here needs it."""
        if self._guest is None:
            self._guest = Guest(self.id, self._bench.store, self._told)
            if not self._arrivals.is_empty:
                await self._bench.store.bus.wake(self.id)  # the owner need not know of what was brought here
        await self._follow(self._guest)
        self._failure = None
        self._is_known.set()
        if self._arrivals.is_empty and not self._users and not self._fanout.has_readers:
            return False
        for _ in range(round(ADOPT_SECONDS / FOLLOW_SECONDS)):
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_SECONDS):
                    await self._knock.wait()
            self._knock.clear()
            await self._follow(self._guest)
        return True

    async def _follow(self, guest: Guest) -> None:
        await guest.follow(self._arrivals, self._fanout)
        self._told = guest.state.length

    async def _recover(self, error: BaseException) -> None:
        """The session failed: say so, and open it anew after a while. What was accepted is in the store."""
        LOG.error("session %s failed", self.id, exc_info=error)
        error = first_of(error)
        code = "store" if isinstance(error, StoreError) else "internal"
        self._fanout.emit(Notice, None, code, f"The session failed and is opened again: {error}")
        self._failure = error if isinstance(error, StoreError) else StoreError(f"The session failed: {error}")
        self._is_known.set()  # nobody may wait for what can't be had now
        self._fanout.nudge()
        await anyio.sleep(RECOVER_SECONDS)
        if self._session is None and self._guest is None:
            self._is_known.clear()

    async def _interrupt_unknown(self, interrupt: Interrupt) -> Settled | None:
        """Interrupt a session that was not loaded a moment ago, or that is another's."""
        if self._session is not None:
            turn = self._session.interrupt(interrupt)
            return await asyncio.shield(turn.settled) if turn else None
        if self._guest is None:
            return None
        running = self._guest.state.turn
        turn_id = interrupt.turn or (running.id if running else "")
        aimed = Interrupt(interrupt.id, interrupt.source, turn_id, interrupt.shown)
        return await self._guest.interrupt(aimed)

    def _refusal(self) -> Refusal:
        return Refusal("store", str(self._failure)) if self._failure else CLOSING

    def _is_idle(self) -> bool:
        if not self._arrivals.is_empty or (self._session is None and self._guest is None):
            return False
        if self._session is not None:
            return self._session.is_idle
        state = self.state
        return state.turn is None and (not state.queue or state.is_held)

    @asynccontextmanager
    async def _used(self) -> AsyncGenerator[None]:
        """Keep the door open while somebody waits at it, and wait until it is known who owns the session."""
        self._users += 1
        try:
            await self._is_known.wait()
            yield
        finally:
            self._users -= 1


def _forget(accepting: "asyncio.Future[Receipt]") -> None:
    """Whoever waits gets the error; nobody has to."""
    if not accepting.cancelled():
        accepting.exception()
