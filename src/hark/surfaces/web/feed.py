"""The last events of one session, kept for readers that come back."""

import time
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallOutput,
    CallStart,
    MessageAccepted,
    QuestionAsked,
    QuestionClosed,
    ReplyDelta,
    ReplyRestarted,
    StepStart,
    TurnEnd,
    TurnStart,
)
from hark.protocol.gateway import ApiSession
from hark.protocol.outcomes import Completed
from hark.surfaces.web.stream import sse

KEPT_EVENTS = 4_096
KEPT_BYTES = 1_000_000
REST_SECONDS = 0.2
_EVENT_BYTES = 250  # about what an event takes without its text


class _Kept:
    """An event, and how it is sent: worked out once, when somebody reads it."""

    def __init__(self, event: AnyEvent) -> None:
        self.event = event
        self.size = _EVENT_BYTES + _text_size(event)
        self._encoded = b""

    def encoded(self) -> bytes:
        """Return it as it is sent."""
        if not self._encoded:
            self._encoded = sse(self.event.type, msgspec.json.encode(self.event), self.event.seq)
        return self._encoded


def _text_size(event: AnyEvent) -> int:
    match event:
        case ReplyDelta(text=text) | CallOutput(text=text) | CallEnd(text=text) | MessageAccepted(text=text):
            return len(text)
        case CallStart(arguments=arguments):
            return len(arguments)
        case TurnEnd(outcome=Completed(text)):
            return len(text)
        case _:
            return 0


class Feed:
    """Follows a session. Readers hold a place in it, so none of them holds another, nor the session.

    A place is how many events there were before it.
    """

    def __init__(self, session: ApiSession) -> None:
        """It follows from here on; what has begun before is asked for."""
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
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self._count = 0
        self._news = anyio.Event()
        self._came = anyio.Event()
        self._is_level = False

    async def run(self) -> None:
        """Follow until the session closes, or until cancelled.

        With nobody reading, an event that has only just come is left to be the last for a moment: those that follow
        are taken together, so that thousands of sessions that nobody looks at cost next to nothing.
        """
        try:
            async for event in self._all():
                self._add(event)
                if not self.readers and time.time() - event.at < REST_SECONDS:
                    with anyio.move_on_after(REST_SECONDS):
                        await self._came.wait()
        finally:
            self.is_over = True
            self._tell()

    async def _all(self) -> AsyncGenerator[AnyEvent]:
        """Yield the events. Others see `_is_level` only while it waits for one: then all that came is here."""
        while True:
            self._is_level = True
            event = await anext(self._events, None)
            self._is_level = False
            if event is None:
                return
            yield event

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

    @property
    def last(self) -> int | None:
        """The number of the last event; None when none has come."""
        return self._kept[-1].event.seq if self._kept else None

    @property
    def end(self) -> int:
        """The place behind the last event."""
        return self._count

    def place_behind(self, seq: int) -> int | None:
        """Return the place behind the event of that number; None when that can't be told any more."""
        for back, kept in enumerate(reversed(self._kept)):
            if kept.event.seq <= seq:
                return self._count - back if kept.event.seq == seq else None
        return self._count - len(self._kept) if self._kept and self._kept[0].event.seq == seq + 1 else None

    def after(self, place: int) -> list[bytes] | None:
        """Return the events from a place on; None when some of them are not kept any more."""
        missing = self._count - place
        if missing > len(self._kept):
            return None
        return [self._kept[-back].encoded() for back in range(missing, 0, -1)]

    async def news(self) -> None:
        """Return when there is an event more, or the end."""
        await self._news.wait()

    @contextmanager
    def reading(self) -> Generator[None]:
        """Count a reader: the feed is kept for it."""
        self.readers += 1
        self._came.set()
        try:
            yield
        finally:
            self.readers -= 1
            if not self.readers:
                self._came = anyio.Event()
            self.used_at = anyio.current_time()

    def _add(self, event: AnyEvent) -> None:
        kept = _Kept(event)
        self._kept.append(kept)
        self._bytes += kept.size
        self._count += 1
        # One event that is larger than all may be stays: its reader is to get it.
        while len(self._kept) > KEPT_EVENTS or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.popleft().size
        self._note(event)
        self._tell()

    def _note(self, event: AnyEvent) -> None:
        """Know what a reader that comes now has to be told of the running turn."""
        match event:
            case ReplyDelta(turn=turn, text=text):
                self.turn = turn
                self._reply.append(text)
            case StepStart(turn=turn) | ReplyRestarted(turn=turn):
                self.turn = turn
                self._reply.clear()
            case TurnStart(turn=turn):
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
        self._news.set()
        self._news = anyio.Event()


class Feeds:
    """The feeds of all sessions that are in use over HTTP."""

    def __init__(self, idle_seconds: float = 300.0) -> None:
        self._idle_seconds = idle_seconds
        self._feeds: dict[str, tuple[Feed, anyio.CancelScope]] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Own the feeds until cancelled; those that nobody uses are let go."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            while True:
                await anyio.sleep(self._idle_seconds / 10)
                self.let_go()

    def of(self, session: ApiSession) -> Feed:
        """Return a session's feed; it follows from the first time on."""
        found = self._feeds.get(session.id)
        if found is not None and not found[0].is_over:
            found[0].used_at = anyio.current_time()
            return found[0]
        assert self._tasks is not None, "the feeds are not running"
        feed, scope = Feed(session), anyio.CancelScope()
        self._feeds[session.id] = feed, scope
        self._tasks.start_soon(self._follow, session.id, feed, scope)
        return feed

    def known(self, session: str) -> Feed | None:
        """Return a session's feed, if there is one."""
        found = self._feeds.get(session)
        return found[0] if found is not None else None

    async def _follow(self, session: str, feed: Feed, scope: anyio.CancelScope) -> None:
        with scope:
            await feed.run()
        if self._feeds.get(session) == (feed, scope):
            del self._feeds[session]

    def let_go(self) -> None:
        """Forget the feeds that nobody has used for a while."""
        before = anyio.current_time() - self._idle_seconds
        for feed, scope in list(self._feeds.values()):
            if not feed.readers and feed.turn is None and feed.used_at < before:
                scope.cancel()
