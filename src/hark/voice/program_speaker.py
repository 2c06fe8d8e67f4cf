"""Speaks with a program that reads a sentence and prints a WAV: espeak-ng, or the person's own, such as piper."""

import os
import re
import shlex
import shutil
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

from hark.processes.piped import Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.voice.settings import VoiceSettings

MOST_CHARACTERS = 400
CODE = "There is code, which is left out."

# Spans are bounded, so that no text takes more than its share of time.
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TABLE_RULE = re.compile(r"^[ \t:|-]+$", re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
_LINK = re.compile(r"\[([^\]\n]{1,300})\]\([^)\n]{0,2000}\)")
_ADDRESS = re.compile(r"<?https?://([^\s/>)]+)[^\s>)]*>?")
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)", re.MULTILINE)
_EMPHASIS = re.compile(r"(\*\*\*|\*\*|\*|___|__|~~)(?=[^\s*~])(.{1,300}?)(?<=\S)\1")
_UNDERLINE = re.compile(r"(?<!\w)_(?=[^\s_])(.{1,300}?)(?<=\S)_(?!\w)")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_SIGNS = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\ufe0e\ufe0f\u200d\U0001f000-\U0001faff]")
_END = re.compile(r"(?<=[.!?:;…])[\"'”’)]*\s+|(?<=[。！？])\s*|\n+")  # a sentence's end, or a line's


def sentences(markdown: str) -> Iterator[str]:
    """Yield what is to be said, a sentence at a time, so that the first can be heard while the next is made."""
    for sentence in _END.split(_without_marks(markdown)):
        words = " ".join(sentence.split())
        while len(words) > MOST_CHARACTERS:
            cut = words.rfind(" ", 0, MOST_CHARACTERS)
            cut = MOST_CHARACTERS if cut <= 0 else cut
            yield words[:cut]
            words = words[cut:].strip()
        if any(character.isalnum() for character in words):
            yield words


def _without_marks(markdown: str) -> str:
    text = _FENCE.sub(f"\n{CODE}\n", markdown)
    text = _TABLE_RULE.sub("", text)
    text = _PICTURE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    text = _ADDRESS.sub(r"\1", text)
    text = _LINE_MARK.sub("", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = _UNDERLINE.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = text.replace("`", "").replace("|", ", ")
    return _SIGNS.sub("", text)


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
