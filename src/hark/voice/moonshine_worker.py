"""The worker process for speech recognition. The worker exits when its parent process does.

Stdin receives requests: a line of JSON (see `TranscriptionRequest`), then the bytes of the audio. Stdout gets lines
of JSON (see `TranscriptionReply`): any number of partial replies, then a final one. A malicious audio file can only
affect this process.
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
SAMPLE_RATE = 16_000
PIECE_SECONDS = 15
TAIL_SECONDS = 0.5
MAX_MEMORY_BYTES = 3 << 30
# Containers with embedded audio. No playlists, which refer to other files.
FORMATS = "aac,aiff,amr,caf,flac,matroska,mov,mp3,ogg,wav,w64,webm"
FORCE_UPDATE = 1


class TranscriptionRequest(TypedDict):
    """A request: the size of the audio that follows, and the maximum duration of the recording."""

    size: int
    most_seconds: float


class TranscriptionReply(TypedDict, total=False):
    """The transcript so far. `error` is `audio` (the recording is invalid) or `model` (the model can't run)."""

    text: str
    seconds: float
    done: bool
    error: str
    reason: str


class BadAudio(Exception):
    """The recording can't be transcribed. The error's text gives the reason."""


class ModelLoadError(Exception):
    """The model can't be loaded or run. The error's text gives the reason."""


def main(idle_seconds: float) -> None:
    """Process requests until stdin ends or no request arrives for `idle_seconds`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the libraries must not be read as a reply
    requests: queue.Queue[tuple[TranscriptionRequest, bytes]] = queue.Queue()
    # A separate thread reads, so that the end of stdin is noticed during inference.
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    model = SpeechModel()  # loaded before the first recording arrives, so that it rarely waits
    while True:
        try:
            request, audio = requests.get(timeout=idle_seconds)
        except queue.Empty:
            os._exit(0)
        is_model_working = True
        for answer in _process_request(model, request, audio):
            replies.write(json.dumps(answer) + "\n")
            replies.flush()
            is_model_working = answer.get("error") != "model"
        if not is_model_working:
            os._exit(1)  # a failed model is not used again; the parent starts another process


def _read_requests(requests: "queue.Queue[tuple[TranscriptionRequest, bytes]]") -> None:
    with contextlib.suppress(ValueError, OSError):
        reader = io.BufferedReader(io.FileIO(0, closefd=False))
        while line := reader.readline():
            request: TranscriptionRequest = json.loads(line)
            audio = reader.read(request["size"])
            if len(audio) < request["size"]:
                break
            requests.put((request, audio))
    os._exit(0)


class SpeechModel:
    """The built-in model. A loading error is raised when the first stream is opened."""

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
                update_interval=1e9,  # transcripts are requested explicitly, never by a timer
                options={"return_audio_data": "false"},
            )
        except (ImportError, OSError, *self._errors) as error:
            self._failure = str(error) or type(error).__name__

    @contextlib.contextmanager
    def open_stream(self) -> Generator[Any]:
        """Open a new stream for one recording.

        Raises:
            ModelLoadError: The model can't be loaded, or its transcription failed.
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


def _transcribe_samples(stream: Any, samples: list[float], flags: int = 0) -> str:
    """Add samples to the stream and return the whole transcript so far."""
    stream.add_audio(samples, SAMPLE_RATE)
    transcript = stream.update_transcription(flags)
    return " ".join(text for line in transcript.lines if (text := line.text.strip()))


def _process_request(model: SpeechModel, request: TranscriptionRequest, audio: bytes) -> Iterator[TranscriptionReply]:
    try:
        with model.open_stream() as stream:
            yield from _transcribe_recording(stream, audio, request["most_seconds"])
    except ModelLoadError as error:
        yield {"done": True, "error": "model", "reason": str(error)}
    except BadAudio as error:
        yield {"done": True, "error": "audio", "reason": str(error)}
    except MemoryError:
        yield {"done": True, "error": "audio", "reason": "it needs too much memory"}


def _transcribe_recording(stream: Any, audio: bytes, max_seconds: float) -> Iterator[TranscriptionReply]:
    """Yield the transcript so far after each piece. The model's voice detector splits the audio at silences."""
    seconds = 0.0
    piece = [0.0] * 0
    for following in _decode_pieces(audio):
        if piece:
            yield {"text": _transcribe_samples(stream, piece), "seconds": seconds}
        piece = following
        seconds += len(piece) / SAMPLE_RATE
        if seconds > max_seconds:
            raise BadAudio(f"it is longer than {max_seconds / 60:.0f} minutes")
    if not piece:
        raise BadAudio("it contains no sound or has an unknown format")
    # Append silence, so that the last word is recognised as complete.
    piece += [0.0] * int(TAIL_SECONDS * SAMPLE_RATE)
    yield {"text": _transcribe_samples(stream, piece, FORCE_UPDATE), "seconds": seconds, "done": True}


def _decode_pieces(audio: bytes) -> Iterator[list[float]]:
    """Decode the recording. Yield its samples, as numbers from -1 to 1, a few seconds at a time."""
    numpy: Any = import_module("numpy")
    frames: list[Any] = []
    size = 0
    for sound in _decode_frames(audio):
        # NaN values would break the model's later transcripts.
        frames.append(numpy.clip(numpy.nan_to_num(sound.to_ndarray()[0]), -1.0, 1.0))
        size += len(frames[-1])
        if size >= PIECE_SECONDS * SAMPLE_RATE:
            yield numpy.concatenate(frames).tolist()
            frames, size = [], 0
    if frames:
        yield numpy.concatenate(frames).tolist()


def _decode_frames(audio: bytes) -> Iterator[Any]:
    """Yield decoded audio frames. For a damaged recording, yield only the readable part."""
    av: Any = import_module("av")
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
    with (
        contextlib.suppress(av.FFmpegError, ValueError, OSError),
        av.open(io.BytesIO(audio), options=options, metadata_errors="replace") as container,
    ):
        if container.streams.audio:
            resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
            for frame in container.decode(audio=0):
                yield from resampler.resample(frame)
            yield from resampler.resample(None)


if __name__ == "__main__":
    main(float(sys.argv[1]))
