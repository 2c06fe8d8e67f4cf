"""What the tests of voice share: recordings, other kinds of them, and a transcriber on real processes."""

import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from hark.processes.cookies import this_process
from hark.processes.piped import spawner
from hark.protocol.speech import Audio
from hark.voice.moonshine import IDLE_SECONDS, Moonshine
from hark.voice.settings import VoiceSettings

RECORDINGS = Path(__file__).parent / "recordings"


def recording(name: str) -> Audio:
    return Audio((RECORDINGS / f"{name}.ogg").read_bytes(), "audio/ogg")


@asynccontextmanager
async def moonshine(home: Path, idle_seconds: float = IDLE_SECONDS) -> AsyncGenerator[Moonshine]:
    transcriber = Moonshine(VoiceSettings(), spawner(this_process(home)), idle_seconds)
    try:
        yield transcriber
    finally:
        await transcriber.close()


def samples(audio: Audio) -> Any:
    """The recording as numbers, 16,000 a second."""
    av: Any = import_module("av")
    numpy: Any = import_module("numpy")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=16_000)
    with av.open(io.BytesIO(audio.data)) as container:
        pieces = [even.to_ndarray()[0] for frame in container.decode(audio=0) for even in resampler.resample(frame)]
    return numpy.concatenate(pieces)


def packed(
    numbers: Any, kind: str = "wav", codec: str = "pcm_s16le", rate: int = 16_000, layout: str = "mono"
) -> Audio:
    """Numbers as a file of some kind."""
    av: Any = import_module("av")
    whole = io.BytesIO()
    with av.open(whole, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(numbers.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = 16_000
        resampler = av.AudioResampler(stream.format, layout, rate, frame_size=stream.frame_size or 1024)
        for even in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(even))
        container.mux(stream.encode(None))
    return Audio(whole.getvalue(), f"audio/{kind}")


def long_recording(seconds: int) -> Audio:
    """A recording of at least so many seconds: the same sentences, with pauses between."""
    numpy: Any = import_module("numpy")
    pause = numpy.zeros(8_000, numpy.int16)
    once = numpy.concatenate([samples(recording("tests")), pause, samples(recording("mail")), pause])
    return packed(numpy.tile(once, 1 + seconds * 16_000 // len(once)))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def plain(text: str) -> str:
    """The words alone."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
