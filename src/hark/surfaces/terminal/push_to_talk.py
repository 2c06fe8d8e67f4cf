"""Push to talk: one key begins a recording, the same one sends what was said, and Esc drops it."""

import asyncio
import time
from collections.abc import Callable

from hark.protocol.speech import SpeechError
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.keys import shown
from hark.text.safe_text import typed_text

MICROPHONE = "🎙️"
END_SECONDS = 1.0


class Talk:
    """One recording at a time. Its words go the way of typed ones."""

    def __init__(self, place: TerminalEnvironment, log: ConversationLog, draw: Callable[[], None]) -> None:
        """`draw` is called when `line` is another."""
        self._place = place
        self._log = log
        self._draw = draw
        self._talking: asyncio.Task[None] | None = None
        self._is_said = asyncio.Event()
        self._began = 0.0

    @property
    def line(self) -> str:
        """What goes on, for the line above the input; "" when nothing does."""
        keys = self._place.keys
        if self._talking is None:
            return ""
        if self._is_said.is_set():
            return f"{MICROPHONE} listening to what you said · {shown(keys.stop)} drops it"
        seconds = f"{time.monotonic() - self._began:.0f} s"
        return f"● recording {seconds} · {shown(keys.talk)} sends it · {shown(keys.stop)} drops it"

    def press(self, say: Callable[[str], None]) -> None:
        """Begin to record words that are for `say`, or end the recording that runs."""
        if self._talking is None:
            self._is_said = asyncio.Event()
            self._began = time.monotonic()
            self._talking = asyncio.create_task(self._talk(self._is_said, say), name="push to talk")
        else:
            self._is_said.set()
        self._draw()

    def drop(self) -> bool:
        """Forget what is being said; tell whether it was still being recorded."""
        if self._talking is None:
            return False
        is_recording = not self._is_said.is_set()
        self._talking.cancel()
        self._log.tell(f"{MICROPHONE} dropped", "voice")
        return is_recording

    async def close(self) -> None:
        """End the recording and its program, within a second."""
        if self._talking is not None:
            self._talking.cancel()
            await asyncio.wait([self._talking], timeout=END_SECONDS)

    async def _talk(self, is_said: asyncio.Event, say: Callable[[str], None]) -> None:
        try:
            dictation = self._place.dictation()
            audio = await dictation.record(is_said.wait)
            is_said.set()
            self._draw()
            words = typed_text(await dictation.words(audio))
            self._log.tell(f'{MICROPHONE} "{words}"')
            say(words)
        except SpeechError as error:
            self._log.tell(f"{MICROPHONE} {error}")
        finally:
            self._talking = None
            self._draw()
