"""Push to talk: one key begins a recording, the same one sends what was said, and Esc drops it."""

import asyncio
import time
from typing import TYPE_CHECKING

from hark.protocol.speech import SpeechError
from hark.surfaces.terminal.keys import shown
from hark.text.safe_text import typed_text

if TYPE_CHECKING:
    from hark.surfaces.terminal.app import TerminalApp

MICROPHONE = "🎙️"
END_SECONDS = 1.0


class Talk:
    """One recording at a time. Its words go the way of typed ones."""

    def __init__(self, app: "TerminalApp") -> None:
        self._app = app
        self._talking: asyncio.Task[None] | None = None
        self._is_said = asyncio.Event()
        self._began = 0.0

    @property
    def line(self) -> str:
        """What goes on, for the line above the input; "" when nothing does."""
        keys = self._app.place.keys
        if self._talking is None:
            return ""
        if self._is_said.is_set():
            return f"{MICROPHONE} listening to what you said · {shown(keys.stop)} drops it"
        seconds = f"{time.monotonic() - self._began:.0f} s"
        return f"● recording {seconds} · {shown(keys.talk)} sends it · {shown(keys.stop)} drops it"

    def press(self) -> None:
        """Begin to record, or send what was recorded."""
        if self._talking is None:
            self._is_said = asyncio.Event()
            self._began = time.monotonic()
            self._talking = asyncio.create_task(self._talk(self._is_said), name="push to talk")
        else:
            self._is_said.set()
        self._app.draw_progress()

    def drop(self) -> bool:
        """Forget what is being said; tell whether it was still being recorded."""
        if self._talking is None:
            return False
        is_recording = not self._is_said.is_set()
        self._talking.cancel()
        self._app.log_view.tell(f"{MICROPHONE} dropped", "voice")
        return is_recording

    async def close(self) -> None:
        """End the recording and its program, within a second."""
        if self._talking is not None:
            self._talking.cancel()
            await asyncio.wait([self._talking], timeout=END_SECONDS)

    async def _talk(self, is_said: asyncio.Event) -> None:
        app = self._app
        session = app.session

        async def until() -> None:
            await is_said.wait()

        try:
            dictation = app.place.dictation()
            audio = await dictation.record(until)
            is_said.set()
            app.draw_progress()
            words = typed_text(await dictation.words(audio))
            app.log_view.tell(f'{MICROPHONE} "{words}"')
            app.say_spoken(session, words)
        except SpeechError as error:
            app.log_view.tell(f"{MICROPHONE} {error}")
        finally:
            self._talking = None
            app.draw_progress()
