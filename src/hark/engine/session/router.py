"""From a session's name to its door, and the housekeeping that all doors share."""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from hark.engine.services import EngineServices
from hark.engine.session.preview import preview, saved_state
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.receipts import queue_items
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.state import SessionState
from hark.protocol.names import is_background
from hark.protocol.receipts import QueueItem
from hark.protocol.store import StoreError

HEARTBEAT_SECONDS = 3.0
MOST_IDLE = 1_000
BEHIND_THE_SCENES = Restrictions(("memory",))


class Router:
    """Opens doors as they are asked for; `run` keeps them going. With `sweeps`, it also adopts work left by others."""

    def __init__(self, bench: EngineServices, *, sweeps: bool, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._bench = bench
        self._heartbeat_seconds = heartbeat_seconds
        self._sweeps = sweeps
        self._doors: dict[str, SessionProxy] = {}
        self._charters: dict[str, Restrictions] = {}
        self._idle_beats: dict[str, int] = {}
        self._tasks: TaskGroup | None = None
        self._is_closing = False
        self._is_empty = anyio.Event()

    def door(self, session: str) -> SessionProxy:
        """Return the session's door; it is there at once, and loads behind it."""
        door = self._doors.get(session)
        if door is None:
            charter = self._charters.get(session) or (BEHIND_THE_SCENES if is_background(session) else None)
            bench = charter.apply(self._bench) if charter else self._bench
            door = self._doors[session] = SessionProxy(session, bench)
            assert self._tasks is not None, "the router is not running"
            if self._is_closing:
                door.close()
            self._tasks.start_soon(self._keep, door, name=f"session {session}")
        return door

    def charter(self, session: str, charter: Restrictions) -> None:
        """Give a session that has no door yet its charter; it is kept until the door is closed."""
        self._charters[session] = charter

    @property
    def doors(self) -> list[SessionProxy]:
        """The doors that are open."""
        return list(self._doors.values())

    @property
    def is_draining(self) -> bool:
        """True when no more turns are begun."""
        return self._is_closing

    def opened(self, session: str) -> SessionProxy | None:
        """Return the door of a session that is open in this process."""
        return self._doors.get(session)

    async def owned(self, session: str) -> SessionProxy | None:
        """Return the door of a session that any process has open: in no other can a turn run. Waits only for those."""
        if session in self._doors:
            return self._doors[session]
        return self.door(session) if await self._bench.store.leases.is_owned(session) else None

    async def state(self, session: str) -> SessionState:
        """Return what is known of a session. One that is open nowhere here is read, and stays closed.

        Raises:
            StoreError: It can't be read.
        """
        door = self._doors.get(session)  # the same one after the wait: to ask for it again could open it anew
        if door is not None:
            await door.known()
            if door.is_loaded:
                return door.state
        return await saved_state(self._bench.store, session)

    async def queue(self, session: str) -> list[QueueItem]:
        """Return what waits in a session, in running order, messages included that no process has read yet.

        Raises:
            StoreError: It can't be read.
        """
        door = self._doors.get(session)
        if door is not None and not self._is_closing:
            return await door.queue()
        return queue_items(session, await preview(self._bench.store, session))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; `close` first to settle what runs."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._heartbeat)
            tasks.start_soon(self._listen)
            if self._sweeps:
                await self._sweep()
            task_status.started()

    async def drain(self) -> None:
        """Begin no more turns, and return when those that run have ended. Bound it from outside, then `close`."""
        self._is_closing = True
        for door in self.doors:
            door.drain()
        if self._doors:
            await self._is_empty.wait()

    async def close(self) -> None:
        """Settle every running turn and let all sessions go. Bound it from outside."""
        self._is_closing = True
        for door in self.doors:
            door.close()
        if not self._doors:
            return
        await self._is_empty.wait()

    async def _keep(self, door: SessionProxy) -> None:
        try:
            await door.run()
        finally:
            if self._doors.get(door.id) is door:
                del self._doors[door.id]
                self._charters.pop(door.id, None)
            if self._is_closing and not self._doors:
                self._is_empty.set()

    def put_to_sleep(self) -> None:
        """Let the sessions go that nobody has needed for a while; the next one who asks has them opened anew.

        When very many are idle, those that were so for longest go earlier: the memory that thousands take at the same
        time is hardly ever given back to the system.
        """
        beats = max(1, round(self._bench.rules.limits.sleep_seconds / self._heartbeat_seconds))
        self._idle_beats = {
            door.id: self._idle_beats.get(door.id, 0) + 1 for door in self._doors.values() if door.is_unneeded
        }
        surplus = len(self._idle_beats) - MOST_IDLE
        longest_first = sorted(self._idle_beats.items(), key=lambda item: -item[1])
        for place, (session, idle) in enumerate(longest_first):
            if idle >= beats or place < surplus:
                self._charters.pop(session, None)
                self._doors.pop(session).close()  # out of the table first: from here on there is a new door

    async def _heartbeat(self) -> None:
        while True:
            await anyio.sleep(self._heartbeat_seconds)
            if not self._is_closing:
                self.put_to_sleep()
            with suppress(StoreError):  # the lease outlasts a beat that fails, and the next one may not
                await self._bench.tenure.renew()
                for session in await self._bench.store.inbox.unread():
                    if session in self._doors:
                        self._doors[session].wake()  # a wake got lost
                if self._sweeps and not self._is_closing:
                    await self._sweep()

    async def _listen(self) -> None:
        async for session in self._bench.store.bus.wakes():
            for door in self.doors if not session else ():
                door.wake()
            if session in self._doors:
                self._doors[session].wake()
            elif self._sweeps and not self._is_closing:
                with suppress(StoreError):
                    await self._sweep() if not session else self.door(session)

    async def _sweep(self) -> None:
        """Open what has work and no door here; a door whose session is another's closes by itself."""
        for session in await self._bench.store.inbox.unfinished():
            self.door(session)
