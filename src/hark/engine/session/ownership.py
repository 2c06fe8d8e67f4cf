"""Opens a session in this process: owns it or follows its owner, as long as this process needs the session."""

import asyncio
import logging
from contextlib import suppress

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.fanout import Fanout
from hark.engine.session.follower import Follower
from hark.engine.session.in_flight import InFlightMessages
from hark.engine.session.session import Session
from hark.engine.session.signal import Signal
from hark.protocol.commands import SHUTDOWN
from hark.protocol.events import Notice
from hark.protocol.store import Lease, LeaseLost, StoreError
from hark.text.cleanup import unwrap_error

FOLLOW_SECONDS = 0.02
ADOPT_SECONDS = 0.25
RECOVER_SECONDS = 1.0
LOG = logging.getLogger(__name__)


class Ownership:
    """Opens a session, and either owns it or follows its owner.

    `session` is set while this process owns the session, and `follower` while another process does. Both are None in
    between. `failure` is the reason why the session is unavailable. `waiters` counts the local tasks that need it.
    """

    def __init__(self, session: str, services: EngineServices) -> None:
        self.id = session
        self.in_flight = InFlightMessages()
        self.fanout = Fanout(session, services.clock)
        self.session: Session | None = None
        self.follower: Follower | None = None
        self.failure: StoreError | None = None
        self.ready = Signal()
        self.inbox_changed = Signal()
        self.waiters = 0
        self.is_over = False
        self.is_closing = False
        self._services = services
        self._published: int | None = None

    def close(self, source: str = SHUTDOWN) -> None:
        """Stop the running turn, release the session and end `run`."""
        self.is_closing = True
        if self.session is not None:
            self.session.close(source)
        self.inbox_changed.set()

    def drain(self) -> None:
        """Let the running turn finish, then release the session and end `run`."""
        self.is_closing = True
        if self.session is not None:
            self.session.drain()
        self.inbox_changed.set()

    async def run(self) -> None:
        """Own or follow the session until `close`. Following also ends when no task in this process needs it."""
        try:
            while not self.is_closing:
                failure: BaseException | None = None
                try:
                    lease = await self._services.store.leases.acquire(self.id)
                    if lease is not None:
                        await self._run_owned(lease)
                    elif not await self._follow_owner():
                        return
                except* LeaseLost:
                    pass  # another process owns the session now, and this one follows it
                except* Exception as group:  # noqa: BLE001 the session's boundary: it fails alone and is reopened
                    failure = group
                # Outside the handler: there, a cancellation would be wrapped in the group and not recognised.
                if failure is not None:
                    await self._recover(failure)
        finally:
            self.is_over = True
            self.in_flight.close(self.id)
            self.fanout.close()
            self.fanout.notify_change()
            self.ready.set()

    async def _run_owned(self, lease: Lease) -> None:
        session = Session(lease, self._services, self.fanout, self.in_flight)
        follower = self.follower
        try:
            if follower is not None:
                await self._read_journal(follower)  # the last records of the previous owner
            await session.load(self._published)
            if follower is not None and follower.has_pending_commands:
                session.on_durable(follower.apply_record)
            self.follower, self.session, self.failure = None, session, None
            if self.is_closing:
                session.close()
            self.ready.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_inbox, session)
                if session.has_crashed_turn:
                    tasks.start_soon(self._wake_previous_owner, session)
                await session.run()
                # Not by cancelling: the traceback would keep the session in memory until the next garbage collection.
                session.drop_callbacks()
                self.inbox_changed.set()
        finally:
            self.session = None
            session.drop_callbacks()
            self._published = max(self._published or 0, session.published) if session.published else self._published
            if follower is not None and follower.has_pending_commands:
                self.follower = follower  # a command here still waits for its answer
            self.ready.clear()
            with anyio.move_on_after(RECOVER_SECONDS, shield=True), suppress(StoreError):
                await self._services.store.leases.release(lease)

    async def _read_inbox(self, session: Session) -> None:
        """Process new inbox entries. Wake-ups may be lost, so the router also requests a read periodically."""
        while True:
            await self.inbox_changed.wait()
            if session.is_over:
                return
            self.inbox_changed.clear()
            entries = await self._services.store.inbox.entries_after(self.id, session.state.cursor)
            for entry in entries:
                session.process_entry(entry)
            if not entries:
                await session.check_ownership()

    async def _wake_previous_owner(self, session: Session) -> None:
        """Wake the process that ran the open turn, which may be alive and unaware that it lost the session."""
        with suppress(StoreError):  # the session's own task reports the failure
            await session.flush()
            await self._services.store.bus.wake(self.id)

    async def _follow_owner(self) -> bool:
        """Follow the owner for a while. Return False if no task in this process needs the session."""
        if self.follower is None:
            self.follower = Follower(self.id, self._services.store, self._published)
            if not self.in_flight.is_empty:
                await self._services.store.bus.wake(self.id)  # the owner may not know of messages sent from here
        await self._read_journal(self.follower)
        self.failure = None
        self.ready.set()
        if self.in_flight.is_empty and not self.waiters and not self.fanout.has_readers:
            return False
        for _ in range(round(ADOPT_SECONDS / FOLLOW_SECONDS)):
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_SECONDS):
                    await self.inbox_changed.wait()
            self.inbox_changed.clear()
            await self._read_journal(self.follower)
        return True

    async def _read_journal(self, follower: Follower) -> None:
        await follower.follow(self.in_flight, self.fanout)
        self._published = follower.state.length

    async def _recover(self, error: BaseException) -> None:
        """Report the session's failure, and reopen the session after a delay. Accepted messages are in the store."""
        LOG.error("session %s failed", self.id, exc_info=error)
        error = unwrap_error(error)
        code = "store" if isinstance(error, StoreError) else "internal"
        self.fanout.emit(Notice, None, code, f"The session failed and is being reopened: {error}")
        self.failure = error if isinstance(error, StoreError) else StoreError(f"The session failed: {error}")
        self.ready.set()  # no task may wait for an unavailable session
        self.fanout.notify_change()
        await anyio.sleep(RECOVER_SECONDS)
        if self.session is None and self.follower is None:
            self.ready.clear()
