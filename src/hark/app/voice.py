"""Voice, as the settings want it: dictation, spoken replies, and the parts that are loaded only when needed."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum
from pathlib import Path

import msgspec
from anyio import to_thread

from hark.disk.cached_file import CachedFile
from hark.disk.private_files import create_private, replace_private
from hark.processes.piped import Spawn
from hark.protocol.speech import Audio, Speaker, SpeechError, Transcriber
from hark.voice.audio_files import ending, join_as_ogg
from hark.voice.program_microphone import ProgramMicrophone
from hark.voice.settings import VoiceSettings


class SpeechPreference(StrEnum):
    """When replies are spoken: always, never, or when they answer a voice message."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"


class SpeechPreferences:
    """The wishes of each session, in a file; `usual` is that of a session that has none."""

    def __init__(self, path: Path, usual: SpeechPreference) -> None:
        decoder = msgspec.json.Decoder(dict[str, SpeechPreference])
        self._file = CachedFile(path, lambda path: decoder.decode(path.read_bytes()))
        self._usual = usual
        self._known: dict[str, SpeechPreference] = {}

    def of(self, session: str) -> SpeechPreference:
        """Return what is wished in a session."""
        try:
            self._known = self._file.read()
        except FileNotFoundError:
            self._known = {}
        except (OSError, msgspec.MsgspecError):
            pass  # what was known stays
        return self._known.get(session, self._usual)

    def keep(self, session: str, wish: SpeechPreference) -> None:
        """Keep a wish, durably.

        Raises:
            OSError: It could not be kept.
        """
        self.of(session)
        replace_private(self._file.path, msgspec.json.encode({**self._known, session: wish}))


class AgentNarrator:
    """Speaks replies with the agent's speaker, each as one voice message."""

    def __init__(self, speaker: Speaker, wishes: SpeechPreferences, spawn: Spawn) -> None:
        self._speaker = speaker
        self._wishes = wishes
        self._spawn = spawn

    def wants(self, session: str, *, is_heard: bool) -> bool:
        """Tell whether a reply is to be spoken; `is_heard`: it answers a voice message."""
        wish = self._wishes.of(session)
        return wish is SpeechPreference.ON or (wish is SpeechPreference.AUTO and is_heard)

    async def speak(self, texts: AsyncIterator[str]) -> bytes:
        """Return one voice message of all the texts, each spoken as it comes. Cancelling ends it at once.

        Raises:
            SpeechError: It can't be spoken.
        """
        pieces: list[Audio] = []
        async for text in texts:
            pieces += [piece async for piece in self._speaker.speak(text)]
        return (await join_as_ogg(pieces, self._spawn)).data if pieces else b""


OFF = 'Voice is switched off: set [voice] stt to "moonshine" or "openai" to talk.'


class ProgramDictation:
    """Records with a program, and transcribes as all surfaces do. A recording whose words can't be had is kept."""

    def __init__(self, microphone: ProgramMicrophone, transcriber: Transcriber | None, folder: Path) -> None:
        self._microphone = microphone
        self._transcriber = transcriber
        self._folder = folder

    async def record(self, until: Callable[[], Awaitable[object]]) -> Audio:
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


def make_transcriber(settings: VoiceSettings, spawn: Spawn) -> Transcriber | None:
    """Return what turns speech into words, to be closed by its owner; None when voice is off. It starts nothing yet."""
    match settings.stt:
        case "moonshine":
            from hark.voice.moonshine import Moonshine

            return Moonshine(settings, spawn)
        case "openai":
            from hark.voice.openai_speech import OpenAiSpeech

            return OpenAiSpeech(settings)
        case "off":
            return None


def make_speaker(settings: VoiceSettings, spawn: Spawn) -> Speaker:
    """Return what speaks replies; it starts nothing yet."""
    from hark.voice.program_speaker import ProgramSpeaker

    return ProgramSpeaker(settings, spawn)


async def spoken(speaker: Speaker, text: str) -> Audio:
    """Return a text as one WAV; without data when there is nothing in it to be said. Cancelling ends it at once.

    Raises:
        SpeechError: It can't be spoken.
    """
    from hark.voice.audio_files import join_wavs

    pieces = [piece async for piece in speaker.speak(text)]
    return join_wavs(pieces) if pieces else Audio(b"")
