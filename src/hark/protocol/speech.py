"""The ports for speech: audio to text, and text to audio."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Protocol

from msgspec import Struct


class SpeechError(Exception):
    """Speech could not be transcribed or produced. The text says why and what to do."""


class Audio(Struct, frozen=True):
    """A recording as received: its bytes and media type, such as `audio/ogg`."""

    data: bytes
    media_type: str = ""


class Utterance(Struct, frozen=True):
    """A transcribed recording. `text` is "" for silence; `seconds` is the recording's length."""

    text: str
    seconds: float = 0.0
    language: str = ""


class Transcriber(Protocol):
    """Converts audio to text."""

    def warm_up(self) -> None:
        """Prepare for a recording that may arrive soon. Does not wait and never fails."""
        ...

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        """Return the transcript. `progress` receives the partial transcript of a long recording.

        Cancelling stops all work immediately.

        Raises:
            SpeechError: The data is not audio, or no transcriber could process it.
        """
        ...

    async def close(self) -> None:
        """Stop background processes, within a second."""
        ...


class Speaker(Protocol):
    """Converts text to audio."""

    def speak(self, text: str) -> AsyncGenerator[Audio, None]:
        """Yield the speech piece by piece. Closing or cancelling the generator stops all work immediately.

        Raises:
            SpeechError: The text can't be spoken.
        """
        ...


class Narrator(Protocol):
    """Converts replies to speech for sessions that enabled it."""

    def should_speak(self, session: str, *, is_voice_reply: bool) -> bool:
        """Return whether to speak a reply in a session. `is_voice_reply`: the reply answers a voice message."""
        ...

    async def speak(self, texts: AsyncIterator[str]) -> bytes:
        """Return one voice message with all the texts, or b"" if there is nothing to speak.

        Each text is converted as it arrives. Cancelling stops all work immediately.

        Raises:
            SpeechError: The texts can't be spoken.
        """
        ...


class Dictation(Protocol):
    """Records and transcribes speech from this machine's microphone."""

    async def record(self, until: Callable[[], Awaitable[object]]) -> Audio:
        """Record until `until` returns. Cancelling discards the recording and stops the recorder.

        Raises:
            SpeechError: This machine can't record; the text says what to do.
        """
        ...

    async def transcribe(self, audio: Audio) -> str:
        """Return the transcript. Cancelling stops the work immediately.

        Raises:
            SpeechError: No speech was recognised, or transcription failed; the text says where the recording is
                stored.
        """
        ...
