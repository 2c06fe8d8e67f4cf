"""Processes one voice message: stores it, transcribes it, and sends the transcript in order of arrival."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from anyio import to_thread

from hark.protocol.commands import VOICE_MESSAGE
from hark.protocol.meaning import StopMeaning
from hark.protocol.speech import SpeechError, Transcriber
from hark.protocol.voice_messages import WITHDRAWN, VoiceClient, VoiceNote, VoiceOutcome, VoiceResult
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings

SOURCE = VOICE_MESSAGE  # the source of an interrupt
MICROPHONE = "\N{STUDIO MICROPHONE}\N{VARIATION SELECTOR-16}"
OFF_TEXT = 'Voice messages are not transcribed ([voice] stt = "off"). Type your message instead.'
SILENCE_TEXT = "No speech was recognised in the recording. Record it again or type your message."
SHUTDOWN_TEXT = "Hark is shutting down. The voice message is stored and will be transcribed at the next start."


class QueueSlot:
    """A position in a conversation's queue. The caller that joined the queue must also leave it."""

    def __init__(self, queue: "list[QueueSlot]") -> None:
        """Add the slot at the end of the queue."""
        self.is_stopped = False  # a stop arrived after this message and before its turn
        self._queue = queue
        self.is_first = anyio.Event()
        queue.append(self)
        queue[0].is_first.set()

    def slots_before(self) -> "list[QueueSlot]":
        """Return the slots before this one."""
        return self._queue[: self._queue.index(self)]

    async def wait_until_first(self) -> None:
        """Wait until all earlier slots have left. Safe to cancel: the slot remains in the queue."""
        await self.is_first.wait()

    def leave(self) -> None:
        """Leave the queue so that the next slot can proceed. Repeated calls have no effect."""
        if self in self._queue:
            self._queue.remove(self)
            if self._queue:
                self._queue[0].is_first.set()


class VoiceMessageDelivery:
    """Processes one voice message in its queue slot. The creator calls `run` once and then leaves the slot."""

    def __init__(
        self,
        note: VoiceNote,
        client: VoiceClient,
        slot: QueueSlot,
        recordings: PendingRecordings,
        stop: Callable[[], Awaitable[None]],
    ) -> None:
        self.conversation = note.conversation
        self.slot = slot
        self._note = note
        self._client = client
        self._recordings = recordings
        self._stop = stop
        self._arrived_at_ns = time.time_ns()  # wall-clock time, because the next process reads it
        self._transcription = anyio.CancelScope()
        self._is_transcribed = note.is_said
        self._result: asyncio.Future[VoiceResult] = asyncio.get_running_loop().create_future()

    async def result(self) -> VoiceResult:
        """Wait for the result of the voice message. Cancelling ends the wait, not the transcription.

        Raises:
            SpeechError: The recording can't be stored, or Hark is shutting down and will transcribe it at the next
                start.
        """
        return await asyncio.shield(self._result)

    def withdraw(self) -> bool:
        """Cancel the transcription. Return False, without effect, if the transcript already exists."""
        if self._is_transcribed:
            return False
        self._transcription.cancel()
        return True

    async def run(self, transcriber: Transcriber | None, settings: VoiceSettings) -> None:
        """Store, transcribe and send the voice message. If cancelled, the recording stays stored for the next start."""
        try:
            result = await self._process(transcriber, settings)
        except SpeechError as error:  # it can't be stored, so the sender is notified
            self._client.show(f"{MICROPHONE} {error}")
            self._fail(error)
        except asyncio.CancelledError:
            self._fail(SpeechError(SHUTDOWN_TEXT))
            raise
        except BaseException as error:
            self._fail(error)
            raise
        else:
            self._result.set_result(result)

    async def _process(self, transcriber: Transcriber | None, settings: VoiceSettings) -> VoiceResult:
        recording = await self._store_recording()
        text = reason = ""
        with self._transcription:
            async with anyio.create_task_group() as tasks:
                if settings.hold:
                    tasks.start_soon(self._client.session.interrupt, SOURCE)
                text, reason = await self._transcribe(transcriber)
        if self._transcription.cancel_called:  # the transcript may have arrived at the same moment
            await self._client.withdraw()
            await to_thread.run_sync(self._recordings.delete, self._note)
            self._client.show(WITHDRAWN)
            return VoiceResult(VoiceOutcome.WITHDRAWN)
        self._is_transcribed = True
        if not text:
            return await self._report_failure(recording, reason or SILENCE_TEXT)
        return await self._send_transcript(text, settings)

    async def _store_recording(self) -> Path:
        try:
            return await to_thread.run_sync(self._recordings.store, self._note, self._arrived_at_ns)
        except OSError as error:
            raise SpeechError(
                f"The voice message can't be stored ({error}) and was not accepted. Send it again."
            ) from error

    async def _transcribe(self, transcriber: Transcriber | None) -> tuple[str, str]:
        """Return the transcript and "", or "" and the reason why the recording could not be transcribed."""
        if transcriber is None:
            return "", OFF_TEXT
        try:
            utterance = await transcriber.transcribe(self._note.audio, self._show_partial_transcript)
        except SpeechError as error:
            return "", str(error)
        return utterance.text.strip(), ""

    async def _send_transcript(self, text: str, settings: VoiceSettings) -> VoiceResult:
        if isinstance(self._client.session.interpret(text), StopMeaning):  # a stop never waits for its turn
            if settings.echo:
                self._client.show(_format_echo(text))
            await self._stop()
            await to_thread.run_sync(self._recordings.delete, self._note)
            return VoiceResult(VoiceOutcome.STOPPED, text)
        await self.slot.wait_until_first()
        if settings.echo:
            self._client.show(_format_echo(text))
        receipt = await self._client.say(text, is_stopped=self.slot.is_stopped)
        self.slot.leave()
        await to_thread.run_sync(self._recordings.delete, self._note)
        return VoiceResult(VoiceOutcome.SAID, text, receipt)

    async def _report_failure(self, recording: Path, reason: str) -> VoiceResult:
        await self.slot.wait_until_first()
        self._client.show(f"{MICROPHONE} {reason}")
        receipt = await self._client.queue(
            f"[A voice message could not be transcribed: {reason} Its recording is in the file {recording}. "
            "Don't guess its content.]"
        )
        self.slot.leave()
        await to_thread.run_sync(self._recordings.delete_metadata, self._note)
        return VoiceResult(VoiceOutcome.LOST, "", receipt)

    def _fail(self, error: BaseException) -> None:
        self._result.set_exception(error)
        self._result.exception()  # marks the error as retrieved even if no caller waits for it

    def _show_partial_transcript(self, text: str) -> None:
        self._client.show(f"{MICROPHONE} {text} …")


def _format_echo(text: str) -> str:
    return f'{MICROPHONE} "{text}"'
