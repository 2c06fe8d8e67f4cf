"""Joins pieces of speech into one voice message, as chat apps play it."""

import os
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
