"""WAV files, put together: programs that print one don't know its length beforehand, and say a wrong one."""

import struct
from collections.abc import Sequence

from hark.protocol.speech import Audio, SpeechError


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
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + bytes(samples)
    return Audio(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks, "audio/wav")


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
