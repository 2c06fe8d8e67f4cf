"""Feeds: the recent events of each session, followed once for all its readers over HTTP."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import anyio
from anyio.lowlevel import checkpoint

from hark.protocol.events import (
    AnyEvent,
    CallOutput,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    ReplyDelta,
    ReplyRestarted,
    StepStart,
    TurnEnd,
    TurnStart,
)
from hark.protocol.session import Session
from hark.surfaces.web.live.recent_events import KeptEvents, joined

REST_SECONDS = 1.0
LOOK_SECONDS = 2.0
MOST_IDLE = 500
PIECES = (ReplyDelta, ReasoningDelta, CallOutput)


class Feed:
    """Follows a session. Readers hold a place in it, so none of them holds another, nor the session."""

    def __init__(self, session: Session) -> None:
        """It follows from here on; what has begun before is asked for."""
        self.kept = KeptEvents()
        self.readers = 0
        self.is_over = False
        self.used_at = anyio.current_time()
        self.turn: str | None = None
        self.questions: dict[str, QuestionAsked] = {}
        self._reply: list[str] = []
        self._events = session.events()
        running = session.running()
        if running is not None:
            self.turn = running.turn
            self.questions.update((asked.question, asked) for asked in running.questions)
            self._reply.append(running.text)
        self._waiting: list[asyncio.Future[None]] = []
        self._rest: asyncio.Future[None] | None = None
        self._is_level = False

    async def run(self) -> None:
        """Follow until the session closes, or until cancelled.

        With nobody reading, it rests after a piece of text: those that follow are taken together, so that thousands
        of sessions that nobody looks at cost next to nothing.
        """
        try:
            while events := await self._take():
                for event in joined(events) if not self.readers else events:
                    self.kept.add(event)
                    self._note(event)
                self._tell()
                if not self.readers and isinstance(events[-1], PIECES):
                    await self._rest_a_while()
        finally:
            self.is_over = True
            self._tell()

    def close(self) -> None:
        """Follow no longer. No cancel: its traceback would hold all that was kept until garbage is collected."""
        self.is_over = True
        self._events.close()
        if self._rest is not None:
            _wake(self._rest)

    async def _take(self) -> list[AnyEvent]:
        """Return what came. Others see `_is_level` only while it waits: then all that came before is here."""
        self._is_level = True
        events = await self._events.take()
        self._is_level = False
        return events

    async def _rest_a_while(self) -> None:
        """Return after a while, or when a reader comes."""
        loop = asyncio.get_running_loop()
        self._rest = loop.create_future()
        timer = loop.call_later(REST_SECONDS, _wake, self._rest)
        try:
            await self._rest
        finally:
            timer.cancel()
            self._rest = None

    async def level(self) -> None:
        """Return when all is here that was told before this call."""
        with self.reading():
            await checkpoint()  # an event that has just come has woken `run`, which is before us in the line
            while not self._is_level and not self.is_over:
                await checkpoint()

    @property
    def reply(self) -> str:
        """What the running step has said so far."""
        return "".join(self._reply)

    async def news(self) -> None:
        """Return when there is an event more, or the end."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    @contextmanager
    def reading(self) -> Generator[None]:
        """Count a reader: the feed is kept for it."""
        self.readers += 1
        if self._rest is not None:
            _wake(self._rest)
        try:
            yield
        finally:
            self.readers -= 1
            self.used_at = anyio.current_time()

    def _note(self, event: AnyEvent) -> None:
        """Know what a reader that comes now has to be told of the running turn."""
        match event:
            case ReplyDelta(turn=turn, text=text):
                self.turn = turn
                self._reply.append(text)
            case StepStart(turn=turn) | ReplyRestarted(turn=turn) | TurnStart(turn=turn):
                self.turn = turn
                self._reply.clear()
            case TurnEnd():
                self.turn = None
                self._reply.clear()
                self.questions.clear()
                self.used_at = anyio.current_time()
            case QuestionAsked(question=question):
                self.questions[question] = event
            case QuestionClosed(question=question):
                self.questions.pop(question, None)
            case _:
                pass

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for reader in waiting:
            _wake(reader)


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


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
