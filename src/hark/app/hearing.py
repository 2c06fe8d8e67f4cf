"""How the recordings of chats become words: once, before they reach a session, and echoed."""

import base64
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import structs

from hark.protocol.chat import Written
from hark.protocol.messages import Attachment
from hark.protocol.speech import Audio, SpeechError, Transcriber

ECHO = "🎙️"


class ChatHearing:
    """Transcribes voice messages. One whose words can't be had is kept as a file, and its author is told."""

    def __init__(self, transcriber: Transcriber | None, folder: Path, *, echo: bool) -> None:
        self._transcriber = transcriber
        self._folder = folder
        self._echo = echo

    async def __call__(self, message: Written, tell: Callable[[str], Awaitable[None]]) -> Written:
        """Return the message with its words. Cancelling ends the hearing at once."""
        voice = message.voice
        assert voice is not None
        if self._transcriber is None:
            return await self._keep(message, voice, tell, "Voice is switched off here ([voice] stt).")
        try:
            audio = Audio(base64.b64decode(voice.data), voice.media_type)
            heard = await self._transcriber.transcribe(audio)
        except SpeechError as error:
            return await self._keep(message, voice, tell, f"I could not understand your recording: {error}")
        if not heard.text.strip():
            return await self._keep(message, voice, tell, "I heard no words in your recording.")
        if self._echo:
            await tell(f'{ECHO} "{heard.text}"')
        text = "\n".join(part for part in (heard.text, message.text) if part)
        return structs.replace(message, text=text, voice=None)

    async def _keep(
        self, message: Written, voice: Attachment, tell: Callable[[str], Awaitable[None]], why: str
    ) -> Written:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{secrets.token_hex(8)}.audio"
        path.write_bytes(base64.b64decode(voice.data))
        await tell(f"{why} It is kept; say it again, or write it.")
        note = f"[The person sent a recording that could not be understood; it is kept at {path}. They were told so.]"
        text = "\n".join(part for part in (message.text, note) if part)
        return structs.replace(message, text=text, voice=None)
