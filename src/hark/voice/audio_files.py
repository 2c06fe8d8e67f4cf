"""Audio files: their extensions, and functions that join audio pieces into one WAV file or Ogg voice message."""

import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hark.processes.piped_process import Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.voice import ogg_worker

JOIN_TIMEOUT_SECONDS = 60.0
MAX_OUTPUT_BYTES = 64 << 20


async def join_as_ogg(pieces: Sequence[Audio], spawn: Spawn) -> Audio:
    """Join the WAV pieces into one `audio/ogg` file, encoded in a separate process. Cancelling kills the process.

    Raises:
        SpeechError: The pieces can't be joined.
    """
    errors = bytearray()
    environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        process = spawn([sys.executable, "-I", ogg_worker.__file__], Path("/"), environment, errors.extend)
    except (OSError, ValueError) as error:
        raise SpeechError(f"Could not create the voice message: {error}.") from error
    try:
        sizes = msgspec.json.encode([len(piece.data) for piece in pieces]) + b"\n"
        chunks = [sizes, *(piece.data for piece in pieces)]
        encoded = await process.exchange(chunks, JOIN_TIMEOUT_SECONDS, MAX_OUTPUT_BYTES)
    except (OSError, TimeoutError) as error:
        raise SpeechError("Could not create the voice message: encoding the audio failed.") from error
    if not encoded:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise SpeechError(f"Could not create the voice message: {lines[-1] if lines else 'the audio is invalid'}.")
    return Audio(encoded, "audio/ogg")


_EXTENSIONS = {
    "audio/ogg": ".ogg",
    "audio/opus": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/mp3": ".mp3",
    "audio/mp4": ".m4a",
    "audio/m4a": ".m4a",
    "audio/x-m4a": ".m4a",
    "audio/aac": ".m4a",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "audio/wave": ".wav",
    "audio/webm": ".webm",
    "video/webm": ".webm",
    "video/mp4": ".mp4",
    "audio/flac": ".flac",
    "audio/x-flac": ".flac",
}


def base_media_type(media_type: str) -> str:
    """Strip the parameters from a media type: `audio/ogg; codecs=opus` becomes `audio/ogg`."""
    return media_type.partition(";")[0].strip().lower()


def file_extension(media_type: str) -> str:
    """Return the file extension for a media type, such as `.ogg`, or "" for an unknown type."""
    return _EXTENSIONS.get(base_media_type(media_type), "")


def make_wav(fmt_chunk: bytes, samples: bytes) -> bytes:
    """Build a WAV file from these samples. `fmt_chunk` is the content of its `fmt ` chunk."""
    sizes = struct.pack("<I", len(fmt_chunk)), struct.pack("<I", len(samples))
    chunks = b"fmt " + sizes[0] + fmt_chunk + b"data" + sizes[1] + samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def join_wavs(pieces: Sequence[Audio]) -> Audio:
    """Join the WAV files into one, with the correct length in its header.

    Raises:
        SpeechError: A piece is not a WAV file, or its format differs from that of the first piece.
    """
    fmt_chunk, samples = b"", bytearray()
    for piece in pieces:
        piece_fmt, data = _parse_wav(piece.data)
        if fmt_chunk and piece_fmt != fmt_chunk:
            raise SpeechError("The speech program's output has different audio formats. Check [voice] speak_command.")
        fmt_chunk = piece_fmt
        samples += data
    # Programs that write a WAV to stdout don't know its length in advance and write a wrong one.
    return Audio(make_wav(fmt_chunk, bytes(samples)), "audio/wav")


def _parse_wav(wav: bytes) -> tuple[bytes, bytes]:
    """Return the `fmt ` chunk and the samples of a WAV file."""
    if wav[:4] != b"RIFF" or wav[8:12] != b"WAVE":
        raise SpeechError("The speech program did not write a WAV file. Check [voice] speak_command.")
    offset, fmt_chunk = 12, b""
    while offset + 8 <= len(wav):
        name, (size,) = wav[offset : offset + 4], struct.unpack_from("<I", wav, offset + 4)
        body = wav[offset + 8 : offset + 8 + size]
        if name == b"fmt ":
            fmt_chunk = body
        elif name == b"data" and fmt_chunk:
            return fmt_chunk, body
        offset += 8 + size + size % 2
    raise SpeechError("The speech program wrote an invalid WAV file. Check [voice] speak_command.")
