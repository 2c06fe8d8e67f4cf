"""The process that joins pieces of sound into one Ogg file with Opus in it, as chat apps play voice messages.

On stdin comes a line of JSON with the pieces' sizes, then the pieces. On stdout goes the file.
"""

import ctypes
import io
import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

PR_SET_PDEATHSIG = 1
SAMPLES_PER_SECOND = 48_000
BITS_PER_SECOND = 32_000


def main() -> None:
    """Join what comes on stdin."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    reader = sys.stdin.buffer
    pieces = [reader.read(size) for size in json.loads(reader.readline())]
    whole = _joined(pieces)
    with os.fdopen(1, "wb", closefd=False) as out:
        out.write(whole)


def _joined(pieces: list[bytes]) -> bytes:
    av: Any = import_module("av")
    whole = io.BytesIO()
    with av.open(whole, "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=SAMPLES_PER_SECOND, layout="mono", bit_rate=BITS_PER_SECOND)
        resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLES_PER_SECOND, frame_size=960)
        for piece in pieces:
            with av.open(io.BytesIO(piece), format="wav") as sound:
                samples = av.AudioResampler(format="s16", layout="mono", rate=SAMPLES_PER_SECOND)
                for frame in [*sound.decode(audio=0), None]:
                    for even in samples.resample(frame):
                        even.pts = None
                        for packed in resampler.resample(even):
                            container.mux(stream.encode(packed))
        for packed in resampler.resample(None):
            container.mux(stream.encode(packed))
        container.mux(stream.encode(None))
    return whole.getvalue()


if __name__ == "__main__":
    main()
