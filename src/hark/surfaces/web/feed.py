"""The last events of one session, kept for readers that come back."""

import asyncio
from collections import deque
from collections.abc import Generator, Sequence
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
    ReasoningDelta,
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
REST_SECONDS = 1.0
LOOK_SECONDS = 2.0
MOST_IDLE = 500
PIECES = (ReplyDelta, ReasoningDelta, CallOutput)
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
        self._events = session.reader()
        running = session.running()
        if running is not None:
            self.turn = running.turn
            self.questions.update((asked.question, asked) for asked in running.questions)
            self._reply.append(running.text)
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self._count = 0
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
                    self._add(event)
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

    def _add(self, event: AnyEvent) -> None:
        kept = _Kept(event)
        self._kept.append(kept)
        self._bytes += kept.size
        self._count += 1
        # One event that is larger than all may be stays: its reader is to get it.
        while len(self._kept) > KEPT_EVENTS or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.popleft().size
        self._note(event)

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
        waiting, self._waiting = self._waiting, []
        for reader in waiting:
            _wake(reader)


def joined(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return the events with neighbouring pieces of a reply put together: the last one's number stands for all."""
    together: list[AnyEvent] = []
    pieces: list[str] = []
    for place, event in enumerate(events):
        if isinstance(event, ReplyDelta):
            pieces.append(event.text)
            following = events[place + 1] if place + 1 < len(events) else None
            if isinstance(following, ReplyDelta) and following.turn == event.turn:
                continue
            if len(pieces) > 1:
                event = ReplyDelta(event.session, event.turn, event.seq, event.at, "".join(pieces))
            pieces.clear()
        together.append(event)
    return together


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


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

    def of(self, session: ApiSession) -> Feed:
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
