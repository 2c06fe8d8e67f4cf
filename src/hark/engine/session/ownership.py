"""Keeping a session: this process owns it, or follows whoever does, for as long as somebody here needs it."""

import asyncio
import logging
from contextlib import suppress

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.arrivals import Arrivals
from hark.engine.session.fanout import Fanout
from hark.engine.session.follower import Follower
from hark.engine.session.session import Session
from hark.engine.session.signal import Signal
from hark.engine.session.state import SHUTDOWN
from hark.protocol.events import Notice
from hark.protocol.store import Lease, LeaseLost, StoreError
from hark.text.clean import first_of

FOLLOW_SECONDS = 0.02
ADOPT_SECONDS = 0.25
RECOVER_SECONDS = 1.0
LOG = logging.getLogger(__name__)


class Ownership:
    """Has the `session` while this process owns it, and the `guest` while another does; for a moment neither.

    `failure` is why the session can't be had at present. `users` counts who waits here, so that it is kept for them.
    """

    def __init__(self, session: str, bench: EngineServices) -> None:
        self.id = session
        self.arrivals = Arrivals()
        self.fanout = Fanout(session, bench.clock)
        self.session: Session | None = None
        self.guest: Follower | None = None
        self.failure: StoreError | None = None
        self.is_known = Signal()
        self.knock = Signal()
        self.users = 0
        self.is_over = False
        self.is_closing = False
        self._bench = bench
        self._told: int | None = None

    def close(self, source: str = SHUTDOWN) -> None:
        """Settle the running turn, let the session go and end `run`."""
        self.is_closing = True
        if self.session is not None:
            self.session.close(source)
        self.knock.set()

    def drain(self) -> None:
        """Let the running turn come to its end, then let the session go and end `run`."""
        self.is_closing = True
        if self.session is not None:
            self.session.drain()
        self.knock.set()

    async def run(self) -> None:
        """Own the session or follow its owner, until `close`, or until nobody here needs a session of another."""
        try:
            while not self.is_closing:
                failure: BaseException | None = None
                try:
                    lease = await self._bench.store.leases.acquire(self.id)
                    if lease is not None:
                        await self._own(lease)
                    elif not await self._visit():
                        return
                except* LeaseLost:
                    pass  # another process has it now: this one becomes its guest
                except* Exception as group:  # noqa: BLE001 the session's boundary: it fails alone, and is opened anew
                    failure = group
                # Not in the handler: a cancellation that comes there would be wrapped, and not be known as one.
                if failure is not None:
                    await self._recover(failure)
        finally:
            self.is_over = True
            self.arrivals.close(self.id)
            self.fanout.close()
            self.fanout.nudge()
            self.is_known.set()

    async def _own(self, lease: Lease) -> None:
        session = Session(lease, self._bench, self.fanout, self.arrivals)
        guest = self.guest
        try:
            if guest is not None:
                await self._follow(guest)  # the last words of the owner before us
            await session.load(self._told)
            if guest is not None and guest.is_asking:
                session.on_durable(guest.hear)
            self.guest, self.session, self.failure = None, session, None
            if self.is_closing:
                session.close()
            self.is_known.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_inbox, session)
                if session.was_cut:
                    tasks.start_soon(self._tell_last_owner, session)
                await session.run()
                # Not by a cancel, whose traceback would hold the session until the next collection of garbage.
                session.let_go()
                self.knock.set()
        finally:
            self.session = None
            session.let_go()
            self._told = max(self._told or 0, session.told) if session.told else self._told
            if guest is not None and guest.is_asking:
                self.guest = guest  # it still owes somebody an answer
            self.is_known.clear()
            with anyio.move_on_after(RECOVER_SECONDS, shield=True), suppress(StoreError):
                await self._bench.store.leases.release(lease)

    async def _read_inbox(self, session: Session) -> None:
        """Take what others put into the inbox. Wakes may be lost, so it is looked at now and then anyway."""
        while True:
            await self.knock.wait()
            if session.is_over:
                return
            self.knock.clear()
            entries = await self._bench.store.inbox.after(self.id, session.state.cursor)
            for entry in entries:
                session.take(entry)
            if not entries:
                await session.look()

    async def _tell_last_owner(self, session: Session) -> None:
        """Wake whoever ran the turn that was found open: it may live, and have nothing to write that would tell it."""
        with suppress(StoreError):  # whoever runs the session hears of it
            await session.flush()
            await self._bench.store.bus.wake(self.id)

    async def _visit(self) -> bool:
        """Follow the owner for a while; False when nobody here needs it."""
        if self.guest is None:
            self.guest = Follower(self.id, self._bench.store, self._told)
            if not self.arrivals.is_empty:
                await self._bench.store.bus.wake(self.id)  # the owner need not know of what was brought here
        await self._follow(self.guest)
        self.failure = None
        self.is_known.set()
        if self.arrivals.is_empty and not self.users and not self.fanout.has_readers:
            return False
        for _ in range(round(ADOPT_SECONDS / FOLLOW_SECONDS)):
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_SECONDS):
                    await self.knock.wait()
            self.knock.clear()
            await self._follow(self.guest)
        return True

    async def _follow(self, guest: Follower) -> None:
        await guest.follow(self.arrivals, self.fanout)
        self._told = guest.state.length

    async def _recover(self, error: BaseException) -> None:
        """The session failed: say so, and open it anew after a while. What was accepted is in the store."""
        LOG.error("session %s failed", self.id, exc_info=error)
        error = first_of(error)
        code = "store" if isinstance(error, StoreError) else "internal"
        self.fanout.emit(Notice, None, code, f"The session failed and is opened again: {error}")
        self.failure = error if isinstance(error, StoreError) else StoreError(f"The session failed: {error}")
        self.is_known.set()  # nobody may wait for what can't be had now
        self.fanout.nudge()
        await anyio.sleep(RECOVER_SECONDS)
        if self.session is None and self.guest is None:
            self.is_known.clear()
