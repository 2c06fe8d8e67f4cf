"""The feeds of all sessions: each begins when it is first asked for, and is let go when nobody uses it."""

import anyio

from hark.protocol.session import Session
from hark.surfaces.web.live.feed import Feed

LOOK_SECONDS = 2.0
MOST_IDLE = 500


class Feeds:
    """The feeds of all sessions that are in use over HTTP."""

    def __init__(self, idle_seconds: float = 300.0) -> None:
        self._idle_seconds = idle_seconds
        self._feeds: dict[str, Feed] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Own the feeds until cancelled; those that nobody uses are let go."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            while True:
                await anyio.sleep(min(self._idle_seconds / 10, LOOK_SECONDS))
                self.let_go()

    def of(self, session: Session) -> Feed:
        """Return a session's feed; it follows from the first time on."""
        found = self._feeds.get(session.id)
        if found is not None and not found.is_over:
            found.used_at = anyio.current_time()
            return found
        assert self._tasks is not None, "the feeds are not running"
        feed = self._feeds[session.id] = Feed(session)
        self._tasks.start_soon(self._follow, session.id, feed)
        return feed

    def known(self, session: str) -> Feed | None:
        """Return a session's feed, if there is one."""
        return self._feeds.get(session)

    async def _follow(self, session: str, feed: Feed) -> None:
        await feed.run()
        if self._feeds.get(session) is feed:
            del self._feeds[session]

    def let_go(self) -> None:
        """Forget the feeds that nobody has used for a while; of very many, all but those that were used last."""
        before = anyio.current_time() - self._idle_seconds
        idle = [feed for feed in self._feeds.values() if not feed.readers and feed.turn is None]
        idle.sort(key=lambda feed: feed.used_at)
        for place, feed in enumerate(idle):
            if feed.used_at < before or place < len(idle) - MOST_IDLE:
                feed.close()
