"""Recordings as files: the names of their kinds, and WAVs put together."""

import struct
from collections.abc import Sequence

from hark.protocol.speech import Audio, SpeechError

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
