"""Publishes a session's events to every reader. Deltas are merged for a slow reader; end events are never lost."""

import asyncio
from collections import deque
from weakref import ref

from hark.engine.session.signal import Signal
from hark.protocol.clock import Clock
from hark.protocol.events import AnyEvent, CallOutput, Event, ReasoningDelta, ReplyDelta

SLOW_READER_EVENTS = 256
MAX_MERGED_CHARACTERS = 4_096  # each merge copies the text, so merging long texts would slow down the publisher
MAX_OUTPUT_CHARACTERS = 65_536


class Subscription:
    """A reader's subscription: the session's events in order, until the session closes. Iterate to read them."""

    def __init__(self, fanout: "Fanout") -> None:
        self._fanout = fanout
        self._events: deque[AnyEvent] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._is_closed = False

    def put(self, event: AnyEvent) -> None:
        """Queue an event for the reader without waiting."""
        if len(self._events) >= SLOW_READER_EVENTS and self._merge(event):
            return
        self._events.append(event)
        self._wake_reader()

    def close(self) -> None:
        """End the reader's iteration after the remaining events."""
        self._is_closed = True
        self._fanout.unsubscribe(self)
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _merge(self, event: AnyEvent) -> bool:
        """Merge a delta into the last event. Return False if it can't be merged. Excess tool output is dropped."""
        last = self._events[-1]
        if isinstance(event, CallOutput):
            if not isinstance(last, CallOutput) or last.call != event.call:
                return False
            if len(last.text) < MAX_OUTPUT_CHARACTERS:
                text = last.text + event.text
                self._events[-1] = CallOutput(event.session, event.turn, event.seq, event.at, event.call, text)
            return True
        for kind in (ReplyDelta, ReasoningDelta):
            if isinstance(event, kind) and isinstance(last, kind) and last.turn == event.turn:
                if len(last.text) >= MAX_MERGED_CHARACTERS:
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

    async def next_batch(self) -> list[AnyEvent]:
        """Wait for events and return all pending events, or [] once the session has closed. Faster than iterating."""
        while not self._events and not self._is_closed:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        events = list(self._events)
        self._events.clear()
        return events


class Fanout:
    """Numbers a session's events and publishes them to its readers. Unreferenced readers are dropped."""

    def __init__(self, session: str, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._seq = 0
        self._readers: list[ref[Subscription]] = []
        self._change = Signal()

    def start_at(self, journal_length: int) -> None:
        """Start event numbers at the journal's length, so that they increase across restarts."""
        self._seq = max(self._seq, journal_length << 20)

    def subscribe(self) -> Subscription:
        """Return a subscription to all events from now on."""
        reader = Subscription(self)
        self._readers.append(ref(reader, self._remove))
        return reader

    def unsubscribe(self, reader: Subscription) -> None:
        """Remove a reader. Does nothing if the reader is unknown."""
        self._remove(ref(reader))

    @property
    def has_readers(self) -> bool:
        """True when at least one reader is subscribed."""
        return bool(self._readers)

    def emit(self, kind: type[Event], turn: str | None, *fields: object) -> None:
        """Publish an event to all readers. Costs almost nothing if there are no readers."""
        self._seq += 1
        if not self._readers:
            return
        event: AnyEvent = kind(self._session, turn, self._seq, self._clock.now(), *fields)  # type: ignore[assignment]
        for reference in self._readers:
            reader = reference()
            if reader is not None:
                reader.put(event)

    def notify_change(self) -> None:
        """Wake the tasks that wait in `wait_for_change`, after an event or the end of the session."""
        self._change.pulse()

    async def wait_for_change(self) -> None:
        """Wait until the next `notify_change`."""
        await self._change.wait()

    def close(self) -> None:
        """Close all subscriptions."""
        for reference in self._readers:
            reader = reference()
            if reader is not None:
                reader.close()

    def _remove(self, removed: ref[Subscription]) -> None:
        # A new list, because this may be called during an `emit`.
        self._readers = [reference for reference in self._readers if reference != removed]
