"""One voice message on its way: kept, transcribed, and said in its turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from anyio import to_thread

from hark.protocol.meaning import StopMeaning
from hark.protocol.speech import SpeechError, Transcriber
from hark.protocol.voice_messages import WITHDRAWN, Fate, Listener, VoiceNote, VoiceResult
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings

SOURCE = "voice"  # of an interrupt
MICROPHONE = "\N{STUDIO MICROPHONE}\N{VARIATION SELECTOR-16}"
OFF = 'Voice messages are not transcribed here ([voice] stt = "off"). Please type it.'
SILENCE = "No words were heard in it. Record it again, or type it."
ENDING = "Hark is about to end. A voice message that was taken is heard at the next start."


class QueueSlot:
    """A position in a queue. Whoever joined leaves it, however it ends."""

    def __init__(self, queue: "list[QueueSlot]") -> None:
        """Join the queue at its end."""
        self.is_stopped = False  # a stop came behind it, before its turn
        self._queue = queue
        self.turn = anyio.Event()
        queue.append(self)
        queue[0].turn.set()

    def before(self) -> "list[QueueSlot]":
        """Return the slots before this one."""
        return self._queue[: self._queue.index(self)]

    async def reached(self) -> None:
        """Return when all that came before have left. Safe to cancel: the slot is kept."""
        await self.turn.wait()

    def leave(self) -> None:
        """Let the next one go on. More than once is once."""
        if self in self._queue:
            self._queue.remove(self)
            if self._queue:
                self._queue[0].turn.set()


class NoteHearing:
    """A voice message with its place in the line. Whoever made it runs it once, and leaves its place behind it."""

    def __init__(
        self,
        note: VoiceNote,
        listener: Listener,
        place: QueueSlot,
        shelf: PendingRecordings,
        stop: Callable[[], Awaitable[None]],
    ) -> None:
        self.line = note.line
        self.place = place
        self._note = note
        self._listener = listener
        self._shelf = shelf
        self._stop = stop
        self._arrived = time.time_ns()  # by the wall clock: it is read by the next process
        self._transcription = anyio.CancelScope()
        self._is_known = note.is_said
        self._ended: asyncio.Future[VoiceResult] = asyncio.get_running_loop().create_future()

    async def ended(self) -> VoiceResult:
        """Return what became of it. Cancelling ends the wait, not the hearing.

        Raises:
            SpeechError: It can't be kept, and is not taken; or Hark ends, and goes on with it at the next start.
        """
        return await asyncio.shield(self._ended)

    def withdraw(self) -> bool:
        """Nobody wants its words any more. False, and without effect, when they are known."""
        if self._is_known:
            return False
        self._transcription.cancel()
        return True

    async def run(self, transcriber: Transcriber | None, settings: VoiceSettings) -> None:
        """Go all the way. Cancelling leaves the recording on the shelf, to be heard again."""
        try:
            heard = await self._hear(transcriber, settings)
        except SpeechError as error:  # it can't be kept: whoever brought it is told
            self._listener.show(f"{MICROPHONE} {error}")
            self._fail(error)
        except asyncio.CancelledError:
            self._fail(SpeechError(ENDING))
            raise
        except BaseException as error:
            self._fail(error)
            raise
        else:
            self._ended.set_result(heard)

    async def _hear(self, transcriber: Transcriber | None, settings: VoiceSettings) -> VoiceResult:
        recording = await self._keep()
        text = reason = ""
        with self._transcription:
            async with anyio.create_task_group() as tasks:
                if settings.hold:
                    tasks.start_soon(self._listener.session.interrupt, SOURCE)
                text, reason = await self._words(transcriber)
        if self._transcription.cancel_called:  # its words may have come in the same moment
            await self._listener.withdraw()
            await to_thread.run_sync(self._shelf.drop, self._note)
            self._listener.show(WITHDRAWN)
            return VoiceResult(Fate.WITHDRAWN)
        self._is_known = True
        if not text:
            return await self._lose(recording, reason or SILENCE)
        return await self._say(text, settings)

    async def _keep(self) -> Path:
        try:
            return await to_thread.run_sync(self._shelf.keep, self._note, self._arrived)
        except OSError as error:
            raise SpeechError(
                f"The voice message can't be kept ({error}), and was not taken. Send it again."
            ) from error

    async def _words(self, transcriber: Transcriber | None) -> tuple[str, str]:
        """Return what was said, or why it is not known."""
        if transcriber is None:
            return "", OFF
        try:
            utterance = await transcriber.transcribe(self._note.audio, self._progress)
        except SpeechError as error:
            return "", str(error)
        return utterance.text.strip(), ""

    async def _say(self, text: str, settings: VoiceSettings) -> VoiceResult:
        if isinstance(self._listener.session.meaning(text), StopMeaning):  # which never waits
            if settings.echo:
                self._listener.show(_quoted(text))
            await self._stop()
            await to_thread.run_sync(self._shelf.drop, self._note)
            return VoiceResult(Fate.STOPPED, text)
        await self.place.reached()
        if settings.echo:
            self._listener.show(_quoted(text))
        receipt = await self._listener.say(text, is_stopped=self.place.is_stopped)
        self.place.leave()
        await to_thread.run_sync(self._shelf.drop, self._note)
        return VoiceResult(Fate.SAID, text, receipt)

    async def _lose(self, recording: Path, reason: str) -> VoiceResult:
        await self.place.reached()
        self._listener.show(f"{MICROPHONE} {reason}")
        receipt = await self._listener.queue(
            f"[A voice message came whose words are not known: {reason} Its recording is in the file {recording}. "
            "Don't guess what was said.]"
        )
        self.place.leave()
        await to_thread.run_sync(self._shelf.lay_aside, self._note)
        return VoiceResult(Fate.LOST, "", receipt)

    def _fail(self, error: BaseException) -> None:
        self._ended.set_exception(error)
        self._ended.exception()  # nobody need ask for it

    def _progress(self, text: str) -> None:
        self._listener.show(f"{MICROPHONE} {text} …")


def _quoted(text: str) -> str:
    return f'{MICROPHONE} "{text}"'
