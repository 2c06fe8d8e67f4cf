"""The way in for voice messages: heard once, in order with the texts around them, and never lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from hark.protocol.speech import Transcriber
from hark.protocol.voice_messages import Listener, VoiceNote
from hark.voice.delivery import SOURCE, NoteHearing, QueueSlot
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings

T = TypeVar("T")

_log = logging.getLogger(__name__)


class VoiceIngress:
    """Takes voice messages of all surfaces. Without a transcriber, each is told that there is none, and kept."""

    def __init__(self, transcriber: Transcriber | None, shelf: PendingRecordings, settings: VoiceSettings) -> None:
        self._transcriber = transcriber
        self._shelf = shelf
        self._settings = settings
        self._lines: dict[str, list[QueueSlot]] = {}
        self._hearings: dict[tuple[str, str], NoteHearing] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_on(self) -> bool:
        """Whether there is somebody who turns speech into words."""
        return self._transcriber is not None

    def change(self, transcriber: Transcriber | None, settings: VoiceSettings) -> None:
        """Have what comes from now on heard like this; what is being heard ends with whom it began."""
        self._transcriber = transcriber
        self._settings = settings

    async def quiet(self) -> None:
        """Return when all that is being heard at the call has been. Safe to cancel."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def hear(self, note: VoiceNote, listener: Listener) -> NoteHearing:
        """Take a voice message; its place in the line is taken when this returns. One on its way is not doubled."""
        key = note.line, note.id
        if key in self._hearings:
            return self._hearings[key]
        place = self._join(note.line)

        async def stop() -> None:
            await self._stop(note.line, place, lambda: listener.session.interrupt(SOURCE))

        hearing = NoteHearing(note, listener, place, self._shelf, stop)
        self._hearings[key] = hearing
        task = asyncio.create_task(hearing.run(self._transcriber, self._settings), name=f"voice message {note.id}")
        self._tasks.add(task)

        def is_over(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            del self._hearings[key]
            self._leave(note.line, place)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("The voice message %s is kept, and heard again at the next start: %r", note.id, error)

        task.add_done_callback(is_over)
        return hearing

    def left(self) -> Iterator[VoiceNote]:
        """Yield what an earlier process had taken and not ended, to be heard again. Blocks as long as the disk does."""
        return self._shelf.left()

    def waiting(self, line: str) -> int:
        """Return how many of that line are still on their way."""
        return len(self._lines.get(line, ()))

    async def read(self, line: str, say: Callable[[bool], Awaitable[T]]) -> T:
        """Say a text when all that came before it in its line has been said; at once when there is nothing."""
        place = self._join(line)
        try:
            await place.reached()
            return await say(place.is_stopped)
        finally:
            self._leave(line, place)

    async def stop(self, line: str, interrupt: Callable[[], Awaitable[T]]) -> T:
        """Interrupt at once, and withdraw the voice messages of a line whose words are not yet known."""
        place = self._join(line)
        try:
            return await self._stop(line, place, interrupt)
        finally:
            self._leave(line, place)

    def withdraw(self, line: str, id: str) -> bool:  # noqa: A002
        """Withdraw one voice message; False when it is not on its way, or its words are known."""
        hearing = self._hearings.get((line, id))
        return hearing is not None and hearing.withdraw()

    async def close(self) -> None:
        """End all that is under way; what was not yet said is heard again at the next start."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _stop(self, line: str, place: QueueSlot, interrupt: Callable[[], Awaitable[T]]) -> T:
        """What is before the stop in its line sets nothing off any more; what runs ends now."""
        before = place.before()
        for other in before:
            other.is_stopped = True
        for hearing in self._hearings.values():
            if hearing.line == line and hearing.place in before:
                hearing.withdraw()
        return await interrupt()

    def _join(self, line: str) -> QueueSlot:
        return QueueSlot(self._lines.setdefault(line, []))

    def _leave(self, line: str, place: QueueSlot) -> None:
        place.leave()
        if not self._lines.get(line, True):
            del self._lines[line]
