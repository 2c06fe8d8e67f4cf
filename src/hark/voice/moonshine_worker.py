"""The process in which speech becomes words: a program of its own, that ends when its parent does.

On stdin come jobs: a line of JSON (see `Job`), then so many bytes of audio. On stdout go lines of JSON (see `Answer`):
any number of partial ones, then one that is done. Whatever a hostile file does to the decoder, it does it here.
"""

import contextlib
import ctypes
import io
import json
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict

PR_SET_PDEATHSIG = 1
SAMPLES_PER_SECOND = 16_000
PIECE_SECONDS = 15
TAIL_SECONDS = 0.5
MEMORY_BYTES = 3 << 30
# Containers that hold their sound themselves: no playlists, which name other files.
FORMATS = "aac,aiff,amr,caf,flac,matroska,mov,mp3,ogg,wav,w64,webm"
FORCE_UPDATE = 1


class TranscriptionRequest(TypedDict):
    """What the parent wants: so many bytes follow, of which so many seconds may be transcribed."""

    size: int
    most_seconds: float


class TranscriptionReply(TypedDict, total=False):
    """The words so far. `error`: `audio` (the recording is at fault) or `model` (the model can't be run)."""

    text: str
    seconds: float
    done: bool
    error: str
    reason: str


class BadAudio(Exception):
    """The recording can't be transcribed; the text says why."""


class ModelLoadError(Exception):
    """The model can't be loaded or run; the text says why."""


def main(idle_seconds: float) -> None:
    """Work until stdin ends, or until there was nothing to do for so long."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print must not be taken for an answer
    jobs: queue.Queue[tuple[TranscriptionRequest, bytes]] = queue.Queue()
    # A thread of its own reads, so that the end of stdin is heard in the middle of inference.
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    model = Model()  # loaded before the first recording comes, so that few have to wait for it
    while True:
        try:
            job, audio = jobs.get(timeout=idle_seconds)
        except queue.Empty:
            os._exit(0)
        is_well = True
        for answer in _answers(model, job, audio):
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
            is_well = answer.get("error") != "model"
        if not is_well:
            os._exit(1)  # one that failed is not asked again: another process takes its place


def _read(jobs: "queue.Queue[tuple[TranscriptionRequest, bytes]]") -> None:
    with contextlib.suppress(ValueError, OSError):
        reader = io.BufferedReader(io.FileIO(0, closefd=False))
        while line := reader.readline():
            job: TranscriptionRequest = json.loads(line)
            audio = reader.read(job["size"])
            if len(audio) < job["size"]:
                break
            jobs.put((job, audio))
    os._exit(0)


class Model:
    """The embedded model. One that can't be loaded says so when it is asked for its first words."""

    def __init__(self) -> None:
        self._transcriber: Any = None
        self._failure = ""
        self._errors: tuple[type[Exception], ...] = ()
        try:
            for decoder in ("av", "numpy"):
                import_module(decoder)
            library: Any = import_module("moonshine_voice.transcriber")
            api: Any = import_module("moonshine_voice.moonshine_api")
            self._errors = (import_module("moonshine_voice.errors").MoonshineError,)
            self._transcriber = library.Transcriber(
                Path(library.__file__).parent / "assets" / "tiny-en",
                api.ModelArch.TINY,
                update_interval=1e9,  # words are wanted when this program says so, never by a timer
                options={"return_audio_data": "false"},
            )
        except (ImportError, OSError, *self._errors) as error:
            self._failure = str(error) or type(error).__name__

    @contextlib.contextmanager
    def listening(self) -> Generator[Any]:
        """Have an ear for one recording, that has heard nothing yet.

        Raises:
            ModelLoadError: It can't be had, or what it heard can't be turned into words.
        """
        if self._failure:
            raise ModelLoadError(self._failure)
        try:
            stream = self._transcriber.create_stream()
            try:
                stream.start()
                yield stream
            finally:
                stream.close()
        except self._errors as error:
            raise ModelLoadError(str(error)) from error


def _words(stream: Any, samples: list[float], flags: int = 0) -> str:
    """Hear these samples, too, and return all the words so far."""
    stream.add_audio(samples, SAMPLES_PER_SECOND)
    transcript = stream.update_transcription(flags)
    return " ".join(text for line in transcript.lines if (text := line.text.strip()))


def _answers(model: Model, job: TranscriptionRequest, audio: bytes) -> Iterator[TranscriptionReply]:
    try:
        with model.listening() as ear:
            yield from _transcribed(ear, audio, job["most_seconds"])
    except ModelLoadError as error:
        yield {"done": True, "error": "model", "reason": str(error)}
    except BadAudio as error:
        yield {"done": True, "error": "audio", "reason": str(error)}
    except MemoryError:
        yield {"done": True, "error": "audio", "reason": "it needs too much memory"}


def _transcribed(ear: Any, audio: bytes, most_seconds: float) -> Iterator[TranscriptionReply]:
    """Yield the words so far after each piece. The model's own voice detector cuts at the silences between."""
    seconds = 0.0
    piece = [0.0] * 0
    for following in _pieces(audio):
        if piece:
            yield {"text": _words(ear, piece), "seconds": seconds}
        piece = following
        seconds += len(piece) / SAMPLES_PER_SECOND
        if seconds > most_seconds:
            raise BadAudio(f"it is longer than {most_seconds / 60:.0f} minutes")
    if not piece:
        raise BadAudio("there is no sound in it, or it is of a kind that is not known")
    # Silence behind it, so that the last word has an end.
    piece += [0.0] * int(TAIL_SECONDS * SAMPLES_PER_SECOND)
    yield {"text": _words(ear, piece, FORCE_UPDATE), "seconds": seconds, "done": True}


def _pieces(audio: bytes) -> Iterator[list[float]]:
    """Yield the recording as samples from -1 to 1, some seconds at a time."""
    numpy: Any = import_module("numpy")
    waiting: list[Any] = []
    size = 0
    for sound in _decoded(audio):
        # What is no number would deafen the model.
        waiting.append(numpy.clip(numpy.nan_to_num(sound.to_ndarray()[0]), -1.0, 1.0))
        size += len(waiting[-1])
        if size >= PIECE_SECONDS * SAMPLES_PER_SECOND:
            yield numpy.concatenate(waiting).tolist()
            waiting, size = [], 0
    if waiting:
        yield numpy.concatenate(waiting).tolist()


def _decoded(audio: bytes) -> Iterator[Any]:
    """Yield frames of sound. What could be read of a broken recording is better than nothing."""
    av: Any = import_module("av")
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
    with (
        contextlib.suppress(av.FFmpegError, ValueError, OSError),
        av.open(io.BytesIO(audio), options=options, metadata_errors="replace") as container,
    ):
        if container.streams.audio:
            resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLES_PER_SECOND)
            for frame in container.decode(audio=0):
                yield from resampler.resample(frame)
            yield from resampler.resample(None)


if __name__ == "__main__":
    main(float(sys.argv[1]))
