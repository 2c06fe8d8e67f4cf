"""Push to talk: a key starts a recording, the same key sends it, and Esc discards it."""

import asyncio
import time
from collections.abc import Callable

from hark.protocol.speech import SpeechError
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.keys import key_label
from hark.text.safe_text import sanitize_input

MICROPHONE = "🎙️"
STOP_TIMEOUT_SECONDS = 1.0


class PushToTalk:
    """Records and transcribes one voice message at a time. The transcript is handled like typed text."""

    def __init__(self, environment: TerminalEnvironment, log: ConversationLog, draw: Callable[[], None]) -> None:
        """Create an idle recorder. `draw` is called whenever `status_line` changes."""
        self._environment = environment
        self._log = log
        self._draw = draw
        self._task: asyncio.Task[None] | None = None
        self._is_recorded = asyncio.Event()
        self._started_at = 0.0

    @property
    def status_line(self) -> str:
        """The recording's state for the line above the input, or "" when idle."""
        keys = self._environment.keys
        if self._task is None:
            return ""
        if self._is_recorded.is_set():
            return f"{MICROPHONE} Transcribing · {key_label(keys.stop)} discard"
        seconds = f"{time.monotonic() - self._started_at:.0f} s"
        return f"● Recording {seconds} · {key_label(keys.talk)} send · {key_label(keys.stop)} discard"

    def toggle(self, on_transcript: Callable[[str], None]) -> None:
        """Start a recording whose transcript is passed to `on_transcript`, or end the current recording."""
        if self._task is None:
            self._is_recorded = asyncio.Event()
            self._started_at = time.monotonic()
            recording = self._record_and_transcribe(self._is_recorded, on_transcript)
            self._task = asyncio.create_task(recording, name="push to talk")
        else:
            self._is_recorded.set()
        self._draw()

    def discard(self) -> bool:
        """Discard the recording or its transcription. Return whether the recording was still in progress."""
        if self._task is None:
            return False
        is_recording = not self._is_recorded.is_set()
        self._task.cancel()
        self._log.show_notice(f"{MICROPHONE} Recording discarded.", "voice")
        return is_recording

    async def close(self) -> None:
        """Stop the recording and the recording program within one second."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_TIMEOUT_SECONDS)

    async def _record_and_transcribe(self, is_recorded: asyncio.Event, on_transcript: Callable[[str], None]) -> None:
        try:
            dictation = self._environment.open_dictation()
            audio = await dictation.record(is_recorded.wait)
            is_recorded.set()
            self._draw()
            transcript = sanitize_input(await dictation.transcribe(audio))
            self._log.show_notice(f'{MICROPHONE} "{transcript}"')
            on_transcript(transcript)
        except SpeechError as error:
            self._log.show_notice(f"{MICROPHONE} {error}")
        finally:
            self._task = None
            self._draw()
