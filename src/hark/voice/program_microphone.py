"""Records with a program that prints what the microphone hears: what the system has, or the person's own."""

import os
import shlex
import shutil
import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from hark.processes.piped import PipedProcess, Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.voice.audio_files import wav_file
from hark.voice.settings import VoiceSettings

RATE = 16_000
MOST_BYTES = RATE * 2 * 1800  # half an hour, as long as may be transcribed
PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "XDG_RUNTIME_DIR")
SOUND = ("PULSE_", "PIPEWIRE_", "ALSA_", "AUDIO", "DBUS_SESSION_BUS_ADDRESS")  # how the microphone is found
# Each prints 16,000 samples a second of 16 bits, without a header.
_FORM = struct.pack("<HHIIHH", 1, 1, RATE, RATE * 2, 2, 16)
_SIXTEEN_BITS = ("-f", "s16le", "-ar", str(RATE), "-ac", "1", "-")
_REC = ("rec", "-q", "-t", "raw", "-r", str(RATE), "-c", "1", "-b", "16", "-e", "signed-integer", "-")
_FFMPEG = ("ffmpeg", "-loglevel", "error", "-nostdin", "-f")
LINUX = (
    ("parec", "--format=s16le", f"--rate={RATE}", "--channels=1", "--latency-msec=50"),
    ("arecord", "-q", "-t", "raw", "-f", "S16_LE", "-r", str(RATE), "-c", "1"),
    _REC,
    (*_FFMPEG, "alsa", "-i", "default", *_SIXTEEN_BITS),
)
MACOS = (_REC, (*_FFMPEG, "avfoundation", "-i", ":0", *_SIXTEEN_BITS))
NONE = (
    "Nothing here can record: install alsa-utils or sox (macOS: brew install sox), or set [voice] record_command to a "
    "program that prints a recording."
)


class ProgramMicrophone:
    """Starts the program for each recording, and ends it with the recording."""

    def __init__(self, settings: VoiceSettings, spawn: Spawn) -> None:
        self._settings = settings
        self._spawn = spawn

    async def record(self, until: Callable[[], Awaitable[None]]) -> Audio:
        """Record until `until` returns, or the program ends by itself. Cancelling drops the recording.

        Raises:
            SpeechError: Nothing can be recorded here; it says why, and what to do.
        """
        program = self._program()
        errors = bytearray()
        environment = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(SOUND)}
        try:
            process = self._spawn(program, Path("/"), environment, errors.extend)
        except (OSError, ValueError) as error:
            raise SpeechError(
                f"{shlex.quote(program[0])} can't be started: {error}. Check [voice] record_command."
            ) from (error)
        try:
            heard = await _heard(process, until)
        finally:
            with anyio.CancelScope(shield=True):  # in less than a second
                await process.stop()
        if not heard:
            reason = errors.decode(errors="replace").strip()[-300:] or "it heard nothing"
            raise SpeechError(f"Nothing was recorded by {shlex.quote(program[0])}: {reason}. Is there a microphone?")
        return Audio(heard, "") if self._settings.record_command else Audio(wav_file(_FORM, heard), "audio/wav")

    def _program(self) -> list[str]:
        if self._settings.record_command:
            return list(self._settings.record_command)
        for words in MACOS if sys.platform == "darwin" else LINUX:
            if found := shutil.which(words[0]):
                return [found, *words[1:]]
        raise SpeechError(NONE)


async def _heard(process: PipedProcess, until: Callable[[], Awaitable[None]]) -> bytes:
    whole = bytearray()

    async def end() -> None:
        await until()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        while len(whole) < MOST_BYTES and (piece := await process.receive()):
            whole += piece
        tasks.cancel_scope.cancel()
    return bytes(whole)
