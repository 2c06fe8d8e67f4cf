"""What a person says at this machine's microphone, as words."""

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from anyio import to_thread

from hark.disk.private_files import create_private
from hark.protocol.speech import Audio, SpeechError, Transcriber
from hark.voice.audio_files import ending
from hark.voice.program_microphone import ProgramMicrophone

OFF = 'Voice is switched off: set [voice] stt to "moonshine" or "openai" to talk.'


class ProgramDictation:
    """Records with a program, and transcribes as all surfaces do. A recording whose words can't be had is kept."""

    def __init__(self, microphone: ProgramMicrophone, transcriber: Transcriber | None, folder: Path) -> None:
        self._microphone = microphone
        self._transcriber = transcriber
        self._folder = folder

    async def record(self, until: Callable[[], Awaitable[None]]) -> Audio:
        """Record until `until` returns. Cancelling drops the recording.

        Raises:
            SpeechError: Nothing can be recorded here.
        """
        if self._transcriber is None:
            raise SpeechError(OFF)
        self._transcriber.warm_up()  # while the person speaks
        return await self._microphone.record(until)

    async def words(self, audio: Audio) -> str:
        """Return what was said. Cancelling ends the work at once.

        Raises:
            SpeechError: There are no words, or they can't be had; it says where the recording is.
        """
        if self._transcriber is None:
            raise SpeechError(OFF)
        try:
            text = (await self._transcriber.transcribe(audio)).text.strip()
        except SpeechError as error:
            raise SpeechError(f"{error} {await self._keep(audio)}") from error
        if not text:
            raise SpeechError(f"No words were heard. {await self._keep(audio)}")
        return text

    async def _keep(self, audio: Audio) -> str:
        try:
            return f"The recording is kept: {await to_thread.run_sync(self._written, audio)}"
        except OSError as error:
            return f"The recording could not be kept: {error}."

    def _written(self, audio: Audio) -> Path:
        path = self._folder / f"{secrets.token_hex(8)}{ending(audio.media_type) or '.audio'}"
        create_private(path, audio.data)
        return path
