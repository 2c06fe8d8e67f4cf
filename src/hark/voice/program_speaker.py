"""Speaks with a program that reads a sentence and prints a WAV: espeak-ng, or the person's own, such as piper."""

import os
import shlex
import shutil
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from hark.processes.piped import Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.voice.settings import VoiceSettings
from hark.voice.spoken_text import sentences

SENTENCE_SECONDS = 60.0
MOST_BYTES = 32 << 20
PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
# The text goes through a pipe, so that no other user sees it in the list of processes.
SCRIPT = 'IFS= read -r line; printf "%s\\n" "$line" | "$@"'


class ProgramSpeaker:
    """Starts the program once for each sentence, and kills it when nobody listens any more."""

    def __init__(self, settings: VoiceSettings, spawn: Spawn) -> None:
        self._settings = settings
        self._spawn = spawn

    async def speak(self, text: str) -> AsyncGenerator[Audio]:
        """Yield a WAV for each sentence; closing the generator ends the program at once.

        Raises:
            SpeechError: There is no such program, or it does not speak.
        """
        program = self._program()
        for sentence in sentences(text):
            yield Audio(await self._spoken(program, sentence), "audio/wav")

    def _program(self) -> list[str]:
        if self._settings.speak_command:
            return list(self._settings.speak_command)
        found = shutil.which("espeak-ng")
        if found is None:
            raise SpeechError(
                "Replies can't be spoken: espeak-ng is not installed. Install it (Debian, Ubuntu: apt-get install "
                "espeak-ng; macOS: brew install espeak-ng), or set [voice] speak_command."
            )
        return [found, "--stdin", "--stdout", "-v", self._settings.language or "en"]

    async def _spoken(self, program: Sequence[str], sentence: str) -> bytes:
        errors = bytearray()
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        try:
            process = self._spawn(["sh", "-c", SCRIPT, "sh", *program], Path("/"), environment, errors.extend)
        except (OSError, ValueError) as error:
            raise SpeechError(f"Replies can't be spoken: {error}.") from error
        try:
            sound = await process.exchange([f"{sentence}\n".encode()], SENTENCE_SECONDS, MOST_BYTES)
        except (OSError, TimeoutError) as error:
            raise SpeechError(f"Replies can't be spoken: {_name(program)} does not answer.") from error
        if not sound:
            reason = errors.decode(errors="replace").strip()[-300:] or "it does not say why"
            raise SpeechError(f"Replies can't be spoken by {_name(program)}: {reason}. Check [voice] speak_command.")
        return sound


def _name(program: Sequence[str]) -> str:
    return shlex.quote(program[0])
