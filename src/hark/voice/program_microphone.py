"""Records audio with a program that writes it to stdout: an installed program, or [voice] record_command."""

import os
import shlex
import shutil
import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from hark.processes.piped_process import PipedProcess, Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.voice.audio_files import make_wav
from hark.voice.settings import VoiceSettings

SAMPLE_RATE = 16_000
MAX_RECORDING_BYTES = SAMPLE_RATE * 2 * 1800  # half an hour, the longest recording that is transcribed
VARIABLES = ("PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "XDG_RUNTIME_DIR")
SOUND_PREFIXES = ("PULSE_", "PIPEWIRE_", "ALSA_", "AUDIO", "DBUS_SESSION_BUS_ADDRESS")  # they locate the microphone
# Each program writes 16,000 samples of 16 bits per second, without a header.
_FMT_CHUNK = struct.pack("<HHIIHH", 1, 1, SAMPLE_RATE, SAMPLE_RATE * 2, 2, 16)
_RAW_PCM_OPTIONS = ("-f", "s16le", "-ar", str(SAMPLE_RATE), "-ac", "1", "-")
_REC_COMMAND = ("rec", "-q", "-t", "raw", "-r", str(SAMPLE_RATE), "-c", "1", "-b", "16", "-e", "signed-integer", "-")
_FFMPEG_COMMAND = ("ffmpeg", "-loglevel", "error", "-nostdin", "-f")
LINUX_COMMANDS = (
    ("parec", "--format=s16le", f"--rate={SAMPLE_RATE}", "--channels=1", "--latency-msec=50"),
    ("arecord", "-q", "-t", "raw", "-f", "S16_LE", "-r", str(SAMPLE_RATE), "-c", "1"),
    _REC_COMMAND,
    (*_FFMPEG_COMMAND, "alsa", "-i", "default", *_RAW_PCM_OPTIONS),
)
MACOS_COMMANDS = (_REC_COMMAND, (*_FFMPEG_COMMAND, "avfoundation", "-i", ":0", *_RAW_PCM_OPTIONS))
NO_PROGRAM_TEXT = (
    "No recording program found. Install alsa-utils or sox (macOS: brew install sox), or set [voice] record_command "
    "to a program that writes a recording to stdout."
)


class ProgramMicrophone:
    """Starts the recording program for each recording and stops the program at the end."""

    def __init__(self, settings: VoiceSettings, spawn: Spawn) -> None:
        self._settings = settings
        self._spawn = spawn

    async def record(self, until: Callable[[], Awaitable[object]]) -> Audio:
        """Record until `until` returns or the program exits. Cancelling discards the recording.

        Raises:
            SpeechError: This machine can't record. The error's text says why and what to do.
        """
        program = self._find_record_command()
        errors = bytearray()
        names = [name for name in os.environ if name in VARIABLES or name.startswith(SOUND_PREFIXES)]
        environment = {name: os.environ[name] for name in names}
        try:
            process = self._spawn(program, Path("/"), environment, errors.extend)
        except (OSError, ValueError) as error:
            raise SpeechError(
                f"Could not start {shlex.quote(program[0])}: {error}. Check [voice] record_command."
            ) from (error)
        try:
            recorded = await _read_until(process, until)
        finally:
            with anyio.CancelScope(shield=True):  # takes less than a second
                await process.stop()
        if not recorded:
            reason = errors.decode(errors="replace").strip()[-300:] or "it wrote no audio"
            raise SpeechError(f"Nothing was recorded by {shlex.quote(program[0])}: {reason}. Check the microphone.")
        if self._settings.record_command:
            return Audio(recorded, "")
        return Audio(make_wav(_FMT_CHUNK, recorded), "audio/wav")

    def _find_record_command(self) -> list[str]:
        if self._settings.record_command:
            return list(self._settings.record_command)
        for command in MACOS_COMMANDS if sys.platform == "darwin" else LINUX_COMMANDS:
            if found := shutil.which(command[0]):
                return [found, *command[1:]]
        raise SpeechError(NO_PROGRAM_TEXT)


async def _read_until(process: PipedProcess, until: Callable[[], Awaitable[object]]) -> bytes:
    recorded = bytearray()

    async def cancel_after_until() -> None:
        await until()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_after_until)
        while len(recorded) < MAX_RECORDING_BYTES and (piece := await process.receive()):
            recorded += piece
        tasks.cancel_scope.cancel()
    return bytes(recorded)
