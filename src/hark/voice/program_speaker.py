"""Converts text to speech with an external program: espeak-ng, or one from the settings, such as piper."""

import os
import re
import shlex
import shutil
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

from hark.processes.piped_process import Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.text.graphemes import safe_cut
from hark.voice.settings import VoiceSettings

MAX_SENTENCE_CHARACTERS = 400
CODE_TEXT = "Code omitted."

# Spans are bounded, so that no input causes excessive backtracking. The parts of a link contain no opening bracket,
# except for balanced parentheses in the address: a search from each of many openings would take quadratic time.
_TARGET = r"\([^()\n]*+(?:\([^()\n]*+\)[^()\n]*+)*+\)"
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TABLE_RULE = re.compile(r"^[ \t:|-]+$", re.MULTILINE)
_IMAGE = re.compile(rf"!\[([^\[\]\n]{{0,300}})\]{_TARGET}")
_LINK = re.compile(rf"\[([^\[\]\n]{{1,300}})\]{_TARGET}")
_URL = re.compile(r"<?https?://([^\s/>)]+)[^\s>)]*>?")
_LINE_MARKER = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)", re.MULTILINE)
_EMPHASIS = re.compile(r"(\*\*\*|\*\*|\*|___|__|~~)(?=[^\s*~])(.{1,300}?)(?<=\S)\1")
_UNDERLINE = re.compile(r"(?<!\w)_(?=[^\s_])(.{1,300}?)(?<=\S)_(?!\w)")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_SYMBOLS = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\ufe0e\ufe0f\u200d\U0001f000-\U0001faff]")
_SENTENCE_END = re.compile(r"(?<=[.!?:;…])[\"'”’)]*\s+|(?<=[。！？])\s*|\n+")  # the end of a sentence or line


def split_sentences(markdown: str) -> Iterator[str]:
    """Yield the text to speak, one sentence at a time, so that the first can be played while the next is generated."""
    for sentence in _SENTENCE_END.split(_strip_markdown(markdown)):
        text = " ".join(sentence.split())
        while len(text) > MAX_SENTENCE_CHARACTERS:
            cut = text.rfind(" ", 0, MAX_SENTENCE_CHARACTERS)
            cut = safe_cut(text, MAX_SENTENCE_CHARACTERS) if cut <= 0 else cut
            yield text[:cut]
            text = text[cut:].strip()
        if any(character.isalnum() for character in text):
            yield text


def _strip_markdown(markdown: str) -> str:
    text = _FENCE.sub(f"\n{CODE_TEXT}\n", markdown)
    text = _TABLE_RULE.sub("", text)
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    text = _URL.sub(r"\1", text)
    text = _LINE_MARKER.sub("", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = _UNDERLINE.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = text.replace("`", "").replace("|", ", ")
    return _SYMBOLS.sub("", text)


SENTENCE_TIMEOUT_SECONDS = 60.0
MAX_AUDIO_BYTES = 32 << 20
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
# The text is passed through a pipe, so that other users can't see it in the process list.
PIPE_SCRIPT = 'IFS= read -r line; printf "%s\\n" "$line" | "$@"'


class ProgramSpeaker:
    """Runs the speech program once for each sentence. Closing the generator kills the running program."""

    def __init__(self, settings: VoiceSettings, spawn: Spawn) -> None:
        self._settings = settings
        self._spawn = spawn

    async def speak(self, text: str) -> AsyncGenerator[Audio]:
        """Yield WAV audio for each sentence. Closing the generator kills the program immediately.

        Raises:
            SpeechError: The program does not exist or produces no audio.
        """
        program = self._find_speak_command()
        for sentence in split_sentences(text):
            yield Audio(await self._speak_sentence(program, sentence), "audio/wav")

    def _find_speak_command(self) -> list[str]:
        if self._settings.speak_command:
            return list(self._settings.speak_command)
        found = shutil.which("espeak-ng")
        if found is None:
            raise SpeechError(
                "Could not speak the reply: espeak-ng is not installed. Install it (Debian, Ubuntu: apt-get install "
                "espeak-ng; macOS: brew install espeak-ng), or set [voice] speak_command."
            )
        return [found, "--stdin", "--stdout", "-v", self._settings.language or "en"]

    async def _speak_sentence(self, program: Sequence[str], sentence: str) -> bytes:
        errors = bytearray()
        environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        try:
            process = self._spawn(["sh", "-c", PIPE_SCRIPT, "sh", *program], Path("/"), environment, errors.extend)
        except (OSError, ValueError) as error:
            raise SpeechError(f"Could not speak the reply: {error}.") from error
        try:
            audio = await process.exchange([f"{sentence}\n".encode()], SENTENCE_TIMEOUT_SECONDS, MAX_AUDIO_BYTES)
        except (OSError, TimeoutError) as error:
            raise SpeechError(f"Could not speak the reply: {_program_name(program)} did not respond.") from error
        if not audio:
            reason = errors.decode(errors="replace").strip()[-300:] or "no reason given"
            name = _program_name(program)
            raise SpeechError(f"{name} could not speak the reply: {reason}. Check [voice] speak_command.")
        return audio


def _program_name(program: Sequence[str]) -> str:
    return shlex.quote(program[0])
