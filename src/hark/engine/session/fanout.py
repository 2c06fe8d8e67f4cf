"""One session's events to every reader: pieces may be joined for a slow one, ends never get lost."""

import asyncio
from collections import deque
from weakref import ref

from hark.engine.session.signal import Signal
from hark.protocol.clock import Clock
from hark.protocol.events import AnyEvent, CallOutput, Event, ReasoningDelta, ReplyDelta

SLOW_BACKLOG = 256
JOINED_CHARACTERS = 4_096  # each join copies the text, so a long one would make a slow reader slow for all
OUTPUT_CHARACTERS = 65_536


class Subscription:
    """One reader's events, in order, from the moment that it was made. Iterate it; it ends with the session."""

    def __init__(self, fanout: "Fanout") -> None:
        self._fanout = fanout
        self._events: deque[AnyEvent] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._is_closed = False

    def put(self, event: AnyEvent) -> None:
        """Take an event; never waits."""
        if len(self._events) >= SLOW_BACKLOG and self._join(event):
            return
        self._events.append(event)
        self._wake_reader()

    def close(self) -> None:
        """End the reader's iteration, behind what it has not read yet."""
        self._is_closed = True
        self._fanout.leave(self)
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _join(self, event: AnyEvent) -> bool:
        """Put a piece of text together with the last one. A piece of endless output that has no room is let go."""
        last = self._events[-1]
        if isinstance(event, CallOutput):
            if not isinstance(last, CallOutput) or last.call != event.call:
                return False
            if len(last.text) < OUTPUT_CHARACTERS:
                text = last.text + event.text
                self._events[-1] = CallOutput(event.session, event.turn, event.seq, event.at, event.call, text)
            return True
        for kind in (ReplyDelta, ReasoningDelta):
            if isinstance(event, kind) and isinstance(last, kind) and last.turn == event.turn:
                if len(last.text) >= JOINED_CHARACTERS:
                    return False
                self._events[-1] = kind(event.session, event.turn, event.seq, event.at, last.text + event.text)
                return True
        return False

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> AnyEvent:
        while not self._events:
            if self._is_closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self._events.popleft()

    async def take(self) -> list[AnyEvent]:
        """Return all events that wait, at least one; none at the session's end. Cheaper than one by one."""
        while not self._events and not self._is_closed:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        events = list(self._events)
        self._events.clear()
        return events


class Fanout:
    """Numbers a session's events and hands them to its readers. One that nobody holds any more is forgotten."""

    def __init__(self, session: str, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._seq = 0
        self._readers: list[ref[Subscription]] = []
        self._change = Signal()

    def start_at(self, journal_length: int) -> None:
        """Number from here so that numbers rise across restarts: a journal only grows."""
        self._seq = max(self._seq, journal_length << 20)

    def subscribe(self) -> Subscription:
        """Return a reader of all that comes from now on."""
        reader = Subscription(self)
        self._readers.append(ref(reader, self._forget))
        return reader

    def leave(self, reader: Subscription) -> None:
        """Forget a reader; one that is not known is fine."""
        self._forget(ref(reader))

    @property
    def has_readers(self) -> bool:
        """True when somebody reads."""
        return bool(self._readers)

    def emit(self, kind: type[Event], turn: str | None, *fields: object) -> None:
        """Tell every reader; costs next to nothing when there is none."""
        self._seq += 1
        if not self._readers:
            return
        event: AnyEvent = kind(self._session, turn, self._seq, self._clock.now(), *fields)  # type: ignore[assignment]
        for reference in self._readers:
            reader = reference()
            if reader is not None:
                reader.put(event)

    def nudge(self) -> None:
        """Wake whoever waits for a `change`: something was told, or is over."""
        self._change.pulse()

    async def change(self) -> None:
        """Return at the next nudge."""
        await self._change.wait()

    def close(self) -> None:
        """End all readers."""
        for reference in self._readers:
            reader = reference()
            if reader is not None:
                reader.close()

    def _forget(self, gone: ref[Subscription]) -> None:
        # A new list, for this may come in the middle of an `emit`.
        self._readers = [reference for reference in self._readers if reference != gone]
