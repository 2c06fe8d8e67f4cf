"""Who wants to hear replies, and the voice messages that are made of them."""

from collections.abc import AsyncIterator
from enum import StrEnum
from pathlib import Path

import msgspec

from hark.disk.cached_file import CachedFile
from hark.disk.private_files import replace_private
from hark.processes.piped import Spawn
from hark.protocol.speech import Audio, Speaker
from hark.voice.ogg import join_as_ogg


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
