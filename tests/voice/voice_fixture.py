"""Helpers for the voice tests: recordings, other audio formats, and a transcriber with real processes."""

import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.protocol.speech import Audio
from hark.voice.moonshine import IDLE_SECONDS, Moonshine
from hark.voice.settings import VoiceSettings

RECORDINGS = Path(__file__).parent / "recordings"


def load_recording(name: str) -> Audio:
    return Audio((RECORDINGS / f"{name}.ogg").read_bytes(), "audio/ogg")


@asynccontextmanager
async def open_moonshine(home: Path, idle_seconds: float = IDLE_SECONDS) -> AsyncGenerator[Moonshine]:
    transcriber = Moonshine(VoiceSettings(), create_spawner(current_owner(home)), idle_seconds)
    try:
        yield transcriber
    finally:
        await transcriber.close()


def decode_samples(audio: Audio) -> Any:
    """Decode a recording to samples at 16 kHz."""
    av: Any = import_module("av")
    numpy: Any = import_module("numpy")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=16_000)
    with av.open(io.BytesIO(audio.data)) as container:
        pieces = [even.to_ndarray()[0] for frame in container.decode(audio=0) for even in resampler.resample(frame)]
    return numpy.concatenate(pieces)


def encode_audio(
    samples: Any, container_format: str = "wav", codec: str = "pcm_s16le", rate: int = 16_000, layout: str = "mono"
) -> Audio:
    """Encode samples as an audio file with the given container, codec, sample rate and channel layout."""
    av: Any = import_module("av")
    file = io.BytesIO()
    with av.open(file, "w", format=container_format) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = 16_000
        resampler = av.AudioResampler(stream.format, layout, rate, frame_size=stream.frame_size or 1024)
        for resampled in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(resampled))
        container.mux(stream.encode(None))
    return Audio(file.getvalue(), f"audio/{container_format}")


def long_recording(seconds: int) -> Audio:
    """Return a recording of at least this length, made by repeating the same sentences with pauses."""
    numpy: Any = import_module("numpy")
    pause = numpy.zeros(8_000, numpy.int16)
    once = numpy.concatenate(
        [decode_samples(load_recording("tests")), pause, decode_samples(load_recording("mail")), pause]
    )
    return encode_audio(numpy.tile(once, 1 + seconds * 16_000 // len(once)))


def count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def normalize_text(text: str) -> str:
    """Normalize a text to lower case without punctuation."""
    return " ".join("".join(character if character.isalnum() else " " for character in text.lower()).split())
