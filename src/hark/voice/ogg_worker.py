"""The worker process that joins WAV pieces into one Ogg Opus file, the format of voice messages in chat apps.

Stdin receives a line of JSON with the pieces' sizes, then the pieces. Stdout gets the file.
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
SAMPLE_RATE = 48_000
BITS_PER_SECOND = 32_000


def main() -> None:
    """Join the pieces from stdin and write the result to stdout."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    reader = sys.stdin.buffer
    pieces = [reader.read(size) for size in json.loads(reader.readline())]
    ogg_file = _encode_opus(pieces)
    with os.fdopen(1, "wb", closefd=False) as out:
        out.write(ogg_file)


def _encode_opus(pieces: list[bytes]) -> bytes:
    av: Any = import_module("av")
    ogg_file = io.BytesIO()
    with av.open(ogg_file, "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=SAMPLE_RATE, layout="mono", bit_rate=BITS_PER_SECOND)
        resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE, frame_size=960)
        for piece in pieces:
            with av.open(io.BytesIO(piece), format="wav") as sound:
                samples = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
                for frame in [*sound.decode(audio=0), None]:
                    for resampled in samples.resample(frame):
                        resampled.pts = None
                        for packet_frame in resampler.resample(resampled):
                            container.mux(stream.encode(packet_frame))
        for packet_frame in resampler.resample(None):
            container.mux(stream.encode(packet_frame))
        container.mux(stream.encode(None))
    return ogg_file.getvalue()


if __name__ == "__main__":
    main()
