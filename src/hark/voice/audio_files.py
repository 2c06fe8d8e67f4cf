"""Recordings as files: the names of their kinds, and pieces joined into one WAV or one voice message for chat apps."""

import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hark.processes.piped import Spawn
from hark.protocol.speech import Audio, SpeechError
from hark.voice import ogg_worker

JOIN_SECONDS = 60.0
MOST_BYTES = 64 << 20


async def join_as_ogg(pieces: Sequence[Audio], spawn: Spawn) -> Audio:
    """Return one `audio/ogg` of all the WAVs, made in a process of its own. Cancelling kills it.

    Raises:
        SpeechError: They can't be joined.
    """
    errors = bytearray()
    environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        process = spawn([sys.executable, "-I", ogg_worker.__file__], Path("/"), environment, errors.extend)
    except (OSError, ValueError) as error:
        raise SpeechError(f"The voice message can't be made: {error}.") from error
    try:
        sizes = msgspec.json.encode([len(piece.data) for piece in pieces]) + b"\n"
        sound = await process.exchange([sizes, *(piece.data for piece in pieces)], JOIN_SECONDS, MOST_BYTES)
    except (OSError, TimeoutError) as error:
        raise SpeechError("The voice message can't be made: its sound can't be encoded.") from error
    if not sound:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise SpeechError(f"The voice message can't be made: {lines[-1] if lines else 'its sound is broken'}.")
    return Audio(sound, "audio/ogg")


_ENDINGS = {
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


def plain(media_type: str) -> str:
    """Return a media type without its parameters: `audio/ogg` for `audio/ogg; codecs=opus`."""
    return media_type.partition(";")[0].strip().lower()


def ending(media_type: str) -> str:
    """Return how the name of such a file ends, such as `.ogg`; "" for a kind that is not known."""
    return _ENDINGS.get(plain(media_type), "")


def wav_file(form: bytes, samples: bytes) -> bytes:
    """Return a WAV of these samples; `form` is its `fmt ` chunk."""
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def join_wavs(pieces: Sequence[Audio]) -> Audio:
    """Return one WAV of all, with its true length.

    Raises:
        SpeechError: One of them is no WAV, or is of another form than the first.
    """
    form, samples = b"", bytearray()
    for piece in pieces:
        own, data = _parts(piece.data)
        if form and own != form:
            raise SpeechError("The pieces of speech are of different forms.")
        form = own
        samples += data
    # Programs that print a WAV don't know its length beforehand, and say a wrong one.
    return Audio(wav_file(form, bytes(samples)), "audio/wav")


def _parts(wav: bytes) -> tuple[bytes, bytes]:
    """Return a WAV's form and its samples."""
    if wav[:4] != b"RIFF" or wav[8:12] != b"WAVE":
        raise SpeechError("What speaks printed no WAV. Check [voice] speak_command.")
    place, form = 12, b""
    while place + 8 <= len(wav):
        name, (size,) = wav[place : place + 4], struct.unpack_from("<I", wav, place + 4)
        body = wav[place + 8 : place + 8 + size]
        if name == b"fmt ":
            form = body
        elif name == b"data" and form:
            return form, body
        place += 8 + size + size % 2
    raise SpeechError("What speaks printed a broken WAV. Check [voice] speak_command.")
