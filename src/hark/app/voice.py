"""Voice services created from the settings: dictation, transcription and spoken replies. Loaded only when needed."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum
from pathlib import Path

import msgspec
from anyio import to_thread

from hark.disk.cached_file import CachedFile
from hark.disk.private_files import create_private, replace_file
from hark.disk.stored_json import read_json
from hark.processes.piped_process import Spawn
from hark.protocol.speech import Audio, Speaker, SpeechError, Transcriber
from hark.voice.audio_files import file_extension, join_as_ogg
from hark.voice.program_microphone import ProgramMicrophone
from hark.voice.settings import VoiceSettings


class SpeechPreference(StrEnum):
    """When replies are spoken: always, never, or only in reply to a voice message."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"


class SpeechPreferences:
    """Each session's preference for spoken replies, stored in a file. `default` applies to all other sessions."""

    def __init__(self, path: Path, default: SpeechPreference) -> None:
        self._file = CachedFile(path, lambda path: read_json(path, dict[str, SpeechPreference]) or {})
        self._default = default
        self._known: dict[str, SpeechPreference] = {}

    def get(self, session: str) -> SpeechPreference:
        """Return the preference of a session."""
        try:
            self._known = self._file.read()
        except FileNotFoundError:
            self._known = {}
        except OSError:
            pass  # use the last known preferences
        return self._known.get(session, self._default)

    def save(self, session: str, preference: SpeechPreference) -> None:
        """Durably store the preference of a session.

        Raises:
            OSError: The preference could not be stored.
        """
        self.get(session)
        replace_file(self._file.path, msgspec.json.encode({**self._known, session: preference}))


class AgentNarrator:
    """Converts replies to voice messages with the agent's speaker."""

    def __init__(self, speaker: Speaker, preferences: SpeechPreferences, spawn: Spawn) -> None:
        self._speaker = speaker
        self._preferences = preferences
        self._spawn = spawn

    def should_speak(self, session: str, *, is_voice_reply: bool) -> bool:
        """Return whether a reply should be spoken. `is_voice_reply` means that it answers a voice message."""
        preference = self._preferences.get(session)
        return preference is SpeechPreference.ON or (preference is SpeechPreference.AUTO and is_voice_reply)

    async def speak(self, texts: AsyncIterator[str]) -> bytes:
        """Return one voice message with all texts, each converted as it arrives. Cancelling stops immediately.

        Raises:
            SpeechError: The texts can't be converted to speech.
        """
        pieces: list[Audio] = []
        async for text in texts:
            pieces += [piece async for piece in self._speaker.speak(text)]
        return (await join_as_ogg(pieces, self._spawn)).data if pieces else b""


VOICE_OFF = 'Voice is off. Set [voice] stt to "moonshine" or "openai" to talk.'


class ProgramDictation:
    """Records speech with an external program and transcribes it. Saves a recording that can't be transcribed."""

    def __init__(self, microphone: ProgramMicrophone, transcriber: Transcriber | None, folder: Path) -> None:
        self._microphone = microphone
        self._transcriber = transcriber
        self._folder = folder

    async def record(self, until: Callable[[], Awaitable[object]]) -> Audio:
        """Record until `until` returns. Cancelling discards the recording.

        Raises:
            SpeechError: Recording is not possible here.
        """
        if self._transcriber is None:
            raise SpeechError(VOICE_OFF)
        self._transcriber.warm_up()  # while the user speaks
        return await self._microphone.record(until)

    async def transcribe(self, audio: Audio) -> str:
        """Return the transcript. Cancelling stops immediately.

        Raises:
            SpeechError: There is no speech, or it can't be transcribed. The message says where the recording is.
        """
        if self._transcriber is None:
            raise SpeechError(VOICE_OFF)
        try:
            text = (await self._transcriber.transcribe(audio)).text.strip()
        except SpeechError as error:
            raise SpeechError(f"{error} {await self._save(audio)}") from error
        if not text:
            raise SpeechError(f"No speech was recognised. {await self._save(audio)}")
        return text

    async def _save(self, audio: Audio) -> str:
        try:
            return f"The recording is saved: {await to_thread.run_sync(self._write_file, audio)}"
        except OSError as error:
            return f"The recording could not be saved: {error}."

    def _write_file(self, audio: Audio) -> Path:
        path = self._folder / f"{secrets.token_hex(8)}{file_extension(audio.media_type) or '.audio'}"
        create_private(path, audio.data)
        return path


def make_transcriber(settings: VoiceSettings, spawn: Spawn) -> Transcriber | None:
    """Return a transcriber, or None if voice is off. The caller closes it; nothing is started yet."""
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
    """Return a speaker for replies. Nothing is started yet."""
    from hark.voice.program_speaker import ProgramSpeaker

    return ProgramSpeaker(settings, spawn)


async def speak_to_wav(speaker: Speaker, text: str) -> Audio:
    """Convert text to one WAV, without audio data if there is nothing to speak. Cancelling stops immediately.

    Raises:
        SpeechError: The text can't be converted to speech.
    """
    from hark.voice.audio_files import join_wavs

    pieces = [piece async for piece in speaker.speak(text)]
    return join_wavs(pieces) if pieces else Audio(b"")
