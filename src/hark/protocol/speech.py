"""The ports to speech: words out of audio, and audio out of words."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Protocol

from msgspec import Struct


class SpeechError(Exception):
    """The words could not be had; the text says why, and what to do."""


class Audio(Struct, frozen=True):
    """A recording as it came: its bytes and what they are, such as `audio/ogg`."""

    data: bytes
    media_type: str = ""


class Utterance(Struct, frozen=True):
    """What was said: "" for silence. `seconds` is how long the recording is."""

    text: str
    seconds: float = 0.0
    language: str = ""


class Transcriber(Protocol):
    """Turns audio into words."""

    def warm_up(self) -> None:
        """Get ready, as a recording may come soon. It waits for nothing, and fails at nothing."""
        ...

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        """Return the spoken words; `progress` gets the words so far of a long recording.

        Cancelling ends the work at once, and nothing of it goes on.

        Raises:
            SpeechError: It is no audio, or nobody could transcribe it.
        """
        ...

    async def close(self) -> None:
        """End what it keeps running, within a second."""
        ...


class Speaker(Protocol):
    """Turns words into audio."""

    def speak(self, text: str) -> AsyncGenerator[Audio, None]:
        """Yield the speech piece by piece. Closing or cancelling it ends it at once, and nothing of it goes on.

        Raises:
            SpeechError: It can't be spoken.
        """
        ...


class Narrator(Protocol):
    """Speaks replies, where their people want it."""

    def wants(self, session: str, *, is_heard: bool) -> bool:
        """Tell whether a reply in a session is to be spoken; `is_heard`: it answers a voice message."""
        ...

    async def speak(self, texts: AsyncIterator[str]) -> bytes:
        """Return one voice message of all the texts, b"" when nothing in them can be said.

        Each is spoken as it comes. Cancelling ends it at once, and nothing of it goes on.

        Raises:
            SpeechError: It can't be spoken.
        """
        ...


class Dictation(Protocol):
    """What a person says at this machine's microphone."""

    async def record(self, until: Callable[[], Awaitable[object]]) -> Audio:
        """Record until `until` returns. Cancelling drops the recording, and ends what recorded.

        Raises:
            SpeechError: Nothing can be recorded here; it says what to do.
        """
        ...

    async def words(self, audio: Audio) -> str:
        """Return what was said. Cancelling ends the work at once.

        Raises:
            SpeechError: There are no words, or they can't be had; it says where the recording is.
        """
        ...
