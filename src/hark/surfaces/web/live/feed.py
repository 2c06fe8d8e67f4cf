"""Feeds: the recent events of each session, read once for all its HTTP clients."""

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
from hark.surfaces.web.live.recent_events import EventBuffer, merge_reply_deltas

BATCH_SECONDS = 1.0
CLEANUP_SECONDS = 2.0
MAX_IDLE_FEEDS = 500
DELTA_EVENTS = (ReplyDelta, ReasoningDelta, CallOutput)


class Feed:
    """Follows the events of one session.

    Each reader has its own position, so a slow reader delays neither other readers nor the session.
    """

    def __init__(self, session: Session) -> None:
        """Start following the session. The state of a turn that is already running is read from the session."""
        self.buffer = EventBuffer()
        self.readers = 0
        self.is_closed = False
        self.last_used_at = anyio.current_time()
        self.turn: str | None = None
        self.questions = {asked.question: asked for asked in session.open_questions()}
        self.last_closed: QuestionAsked | None = None  # the last closed question of the running turn
        self._reply: list[str] = []
        self._events = session.events()
        running = session.running_turn()
        if running is not None:
            self.turn = running.turn
            self._reply.append(running.text)
        self._waiters: list[asyncio.Future[None]] = []
        self._pause: asyncio.Future[None] | None = None
        self._is_caught_up = False

    async def run(self) -> None:
        """Follow the session until it closes, or until cancelled.

        A feed without readers pauses after a delta and merges the deltas that follow, so that thousands of unwatched
        sessions cost almost nothing.
        """
        try:
            while events := await self._next_events():
                for event in merge_reply_deltas(events) if not self.readers else events:
                    self.buffer.append(event)
                    self._update_turn(event)
                self._wake_readers()
                if not self.readers and isinstance(events[-1], DELTA_EVENTS):
                    await self._pause_until_reader()
        finally:
            self.is_closed = True
            self._wake_readers()

    def close(self) -> None:
        """Stop following. The task isn't cancelled, because its traceback would retain all buffered events."""
        self.is_closed = True
        self._events.close()
        if self._pause is not None:
            _wake(self._pause)

    async def _next_events(self) -> list[AnyEvent]:
        """Return the new events. While this waits, `_is_caught_up` is true: all earlier events are processed."""
        self._is_caught_up = True
        events = await self._events.next_batch()
        self._is_caught_up = False
        return events

    async def _pause_until_reader(self) -> None:
        """Wait for `BATCH_SECONDS`, or until a reader arrives."""
        loop = asyncio.get_running_loop()
        self._pause = loop.create_future()
        timer = loop.call_later(BATCH_SECONDS, _wake, self._pause)
        try:
            await self._pause
        finally:
            timer.cancel()
            self._pause = None

    async def catch_up(self) -> None:
        """Wait until all events that were published before this call are in the buffer."""
        with self.reading():
            await checkpoint()  # a new event has already scheduled `run`, which therefore runs first
            while not self._is_caught_up and not self.is_closed:
                await checkpoint()

    @property
    def reply(self) -> str:
        """The part of the running step's reply that has been streamed so far."""
        return "".join(self._reply)

    async def wait_for_event(self) -> None:
        """Wait until another event arrives, or until the feed closes."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    @contextmanager
    def reading(self) -> Generator[None]:
        """Count a reader while the context is open. A feed with readers is not closed as idle."""
        self.readers += 1
        if self._pause is not None:
            _wake(self._pause)
        try:
            yield
        finally:
            self.readers -= 1
            self.last_used_at = anyio.current_time()

    def _update_turn(self, event: AnyEvent) -> None:
        """Update the state of the running turn for readers that join later."""
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
                self.questions = {name: asked for name, asked in self.questions.items() if asked.turn is None}
                self.last_closed = None
                self.last_used_at = anyio.current_time()
            case QuestionAsked(question=question):
                self.questions[question] = event
            case QuestionClosed(question=question):
                self.last_closed = self.questions.pop(question, self.last_closed)
            case _:
                pass

    def _wake_readers(self) -> None:
        waiters, self._waiters = self._waiters, []
        for reader in waiters:
            _wake(reader)


class Feeds:
    """The feeds of all sessions that are used over HTTP."""

    def __init__(self, idle_seconds: float = 300.0) -> None:
        self._idle_seconds = idle_seconds
        self._feeds: dict[str, Feed] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the feeds until cancelled, and close idle ones."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            while True:
                await anyio.sleep(min(self._idle_seconds / 10, CLEANUP_SECONDS))
                self.close_idle()

    def get_or_start(self, session: Session) -> Feed:
        """Return a session's feed, starting it on the first call."""
        existing = self._feeds.get(session.id)
        if existing is not None and not existing.is_closed:
            existing.last_used_at = anyio.current_time()
            return existing
        assert self._tasks is not None, "the feeds are not running"
        feed = self._feeds[session.id] = Feed(session)
        self._tasks.start_soon(self._run_feed, session.id, feed)
        return feed

    def get(self, session: str) -> Feed | None:
        """Return a session's feed, or None."""
        return self._feeds.get(session)

    async def _run_feed(self, session: str, feed: Feed) -> None:
        await feed.run()
        if self._feeds.get(session) is feed:
            del self._feeds[session]

    def close_idle(self) -> None:
        """Close the feeds that have been idle for too long, and the least recently used beyond `MAX_IDLE_FEEDS`."""
        oldest_allowed = anyio.current_time() - self._idle_seconds
        idle = [feed for feed in self._feeds.values() if not feed.readers and feed.turn is None]
        idle.sort(key=lambda feed: feed.last_used_at)
        for index, feed in enumerate(idle):
            if feed.last_used_at < oldest_allowed or index < len(idle) - MAX_IDLE_FEEDS:
                feed.close()


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
