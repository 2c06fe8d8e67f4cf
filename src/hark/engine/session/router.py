"""Maps session names to session proxies, and does the periodic work for all of them."""

from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from hark.engine.services import EngineServices
from hark.engine.session.preview import preview_state, read_state
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.receipts import queue_items
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.state import SessionState
from hark.protocol.names import is_background
from hark.protocol.receipts import QueueItem
from hark.protocol.store import StoreError

HEARTBEAT_SECONDS = 3.0
MAX_IDLE_SESSIONS = 1_000
PAUSED = "Hark is paused. Messages are stored and run after `hark unpause`."
UNPAUSED = "Hark is no longer paused. Stored messages run now."
BACKGROUND_RESTRICTIONS = Restrictions(("memory",))


class SessionRouter:
    """Opens and runs session proxies on demand. With `adopts_work`, it also adopts work left by other processes."""

    def __init__(
        self, services: EngineServices, *, adopts_work: bool, heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self._services = services
        self._heartbeat_seconds = heartbeat_seconds
        self._adopts_work = adopts_work
        self._proxies: dict[str, SessionProxy] = {}
        self._restrictions: dict[str, Restrictions] = {}
        self._idle_beats: dict[str, int] = {}
        self._tasks: TaskGroup | None = None
        self._known_lapses = services.lease_renewal.lapses
        self._is_closing = False
        self._is_empty = anyio.Event()

    def proxy_for(self, session: str) -> SessionProxy:
        """Return the session's proxy immediately. The proxy loads the session in the background."""
        proxy = self._proxies.get(session)
        if proxy is None:
            restrictions = self._restrictions.get(session) or (
                BACKGROUND_RESTRICTIONS if is_background(session) else None
            )
            services = restrictions.apply(self._services) if restrictions else self._services
            proxy = self._proxies[session] = SessionProxy(session, services)
            assert self._tasks is not None, "the router is not running"
            if self._is_closing:
                proxy.close()
            self._tasks.start_soon(self._run_proxy, proxy, name=f"session {session}")
        return proxy

    def set_restrictions(self, session: str, restrictions: Restrictions) -> None:
        """Set the restrictions of a session that is not open yet. They apply until the session is closed."""
        self._restrictions[session] = restrictions

    @property
    def proxies(self) -> list[SessionProxy]:
        """The proxies of all open sessions."""
        return list(self._proxies.values())

    @property
    def is_closing(self) -> bool:
        """True when the router no longer starts turns."""
        return self._is_closing

    def find_open(self, session: str) -> SessionProxy | None:
        """Return the proxy of a session that is open in this process, or None."""
        return self._proxies.get(session)

    async def find_owned(self, session: str) -> SessionProxy | None:
        """Return the proxy of a session that any process has open, or None. Only open sessions have running turns."""
        if session in self._proxies:
            return self._proxies[session]
        return self.proxy_for(session) if await self._services.store.leases.is_owned(session) else None

    async def read_state(self, session: str) -> SessionState:
        """Return a session's state: the known state if the session is open, otherwise the state in the store.

        Raises:
            StoreError: The session can't be read.
        """
        proxy = self._proxies.get(session)  # the same proxy after the wait, because asking again could open a new one
        if proxy is not None:
            await proxy.wait_until_loaded()
            if proxy.is_loaded:
                return proxy.state
        return await read_state(self._services.store, session)

    async def read_queue(self, session: str) -> list[QueueItem]:
        """Return a session's queued messages in running order, including messages that no process has read yet.

        Raises:
            StoreError: The session can't be read.
        """
        proxy = self._proxies.get(session)
        if proxy is not None and not self._is_closing:
            return await proxy.queue()
        return queue_items(session, await preview_state(self._services.store, session))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. Call `close` first to stop running turns cleanly."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._heartbeat)
            tasks.start_soon(self._read_wakes)
            if self._adopts_work:
                await self._adopt_unfinished()
            task_status.started()

    async def drain(self) -> None:
        """Start no new turns, and wait until all turns have ended. The caller sets a timeout and then calls `close`."""
        self._is_closing = True
        for proxy in self.proxies:
            proxy.drain()
        if self._proxies:
            await self._is_empty.wait()

    async def close(self) -> None:
        """Stop all running turns and release all sessions. The caller sets a timeout."""
        self._is_closing = True
        for proxy in self.proxies:
            proxy.close()
        if not self._proxies:
            return
        await self._is_empty.wait()

    async def _run_proxy(self, proxy: SessionProxy) -> None:
        try:
            await proxy.run()
        finally:
            if self._proxies.get(proxy.id) is proxy:
                del self._proxies[proxy.id]
                self._restrictions.pop(proxy.id, None)
            if self._is_closing and not self._proxies:
                self._is_empty.set()

    def close_idle_sessions(self) -> None:
        """Close sessions that have been unused for a while. They are reopened on demand.

        When very many sessions are idle, those idle for longest are closed earlier, because memory that thousands of
        sessions use at once is rarely returned to the system.
        """
        beats = max(1, round(self._services.rules.limits.sleep_seconds / self._heartbeat_seconds))
        self._idle_beats = {
            proxy.id: self._idle_beats.get(proxy.id, 0) + 1 for proxy in self._proxies.values() if proxy.is_unused
        }
        surplus = len(self._idle_beats) - MAX_IDLE_SESSIONS
        longest_first = sorted(self._idle_beats.items(), key=lambda item: -item[1])
        for position, (session, idle) in enumerate(longest_first):
            if idle >= beats or position < surplus:
                self._restrictions.pop(session, None)
                # removed from the table first, so that the next request opens a new proxy
                self._proxies.pop(session).close()

    def apply_pause(self, is_paused: bool) -> None:
        """Publish a change of the pause to sessions with pending work. At its end, start the pending work."""
        for proxy in self.proxies:
            if proxy.state.turn or proxy.state.queue:
                proxy.publish_notice("pause", PAUSED if is_paused else UNPAUSED)
            if not is_paused and not self._is_closing:
                proxy.start_next()

    async def _heartbeat(self) -> None:
        while True:
            await anyio.sleep(self._heartbeat_seconds)
            self._services.checks.notify(None)
            if not self._is_closing:
                self.close_idle_sessions()
            with suppress(StoreError):  # the lease outlasts one failed renewal
                await self._renew_leases()
                for session in await self._services.store.inbox.unread_sessions():
                    if session in self._proxies:
                        self._proxies[session].wake()  # a wake-up was lost
                if self._adopts_work and not self._is_closing:
                    await self._adopt_unfinished()

    async def _renew_leases(self) -> None:
        """Renew the leases. If they had expired, let each session verify that no other process owns it now."""
        renewal = self._services.lease_renewal
        await renewal.renew()
        if renewal.lapses != self._known_lapses:
            self._known_lapses = renewal.lapses
            for proxy in self.proxies:
                proxy.wake()

    async def _read_wakes(self) -> None:
        async for session in self._services.store.bus.wakes():
            if not session:
                self._services.checks.notify(None)
            for proxy in self.proxies if not session else ():
                proxy.wake()
            if session in self._proxies:
                self._proxies[session].wake()
            elif self._adopts_work and not self._is_closing:
                with suppress(StoreError):
                    await self._adopt_unfinished() if not session else self.proxy_for(session)

    async def _adopt_unfinished(self) -> None:
        """Open sessions with unfinished work. A proxy closes itself if another process owns the session."""
        for session in await self._services.store.inbox.unfinished_sessions():
            self.proxy_for(session)
