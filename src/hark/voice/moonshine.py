"""The built-in speech recognition: English only, on the local machine, in worker processes that can be killed."""

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import anyio
import msgspec

from hark.processes.piped_process import PipedProcess, Spawn
from hark.protocol.speech import Audio, SpeechError, Utterance
from hark.voice import moonshine_worker
from hark.voice.moonshine_worker import TranscriptionReply, TranscriptionRequest
from hark.voice.settings import VoiceSettings, find_settings_problem

STALL_SECONDS = 60.0
MAX_LINE_BYTES = 4 << 20
MAX_RECORDING_BYTES = 64 << 20
MAX_RECORDING_SECONDS = 1800.0
IDLE_SECONDS = 300.0
FIRST_WORKER_IDLE_FACTOR = 12  # the first worker stays longer, so that a slow conversation need not wait for a new one
MIN_WORKERS, MAX_WORKERS = 2, 4  # a long recording must not block a short one
ALTERNATIVE_HINT = 'Or set [voice] stt = "openai" and a base_url to use a transcription server.'
# Environment variables that the worker may need. They contain no secrets.
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


class WorkerFailed(Exception):
    """The worker process exited or sent an invalid reply before it sent its final reply."""


class WorkerStalled(Exception):
    """The worker process sent nothing for too long."""


class WorkerProcess:
    """A worker process that handles one request at a time. The creator must call `stop`."""

    def __init__(self, process: PipedProcess) -> None:
        self._process = process
        self._lock = anyio.Lock()
        self._request_scope = anyio.CancelScope()
        self._unread = bytearray()
        # The worker exits when it was idle for long. This task then cleans up the rest of its process tree.
        self._exit_task = asyncio.create_task(self._wait_for_exit(), name="speech recognition")

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the worker can accept another request."""
        return not self._exit_task.done()

    async def transcribe(self, audio: bytes, max_seconds: float, progress: Callable[[str], None]) -> TranscriptionReply:
        """Return the worker's final reply. After any exception the worker may still be busy and must be stopped.

        Raises:
            WorkerFailed: The process exited or sent an invalid reply.
            WorkerStalled: The process no longer replies.
        """
        async with self._lock:
            if not self.is_alive:
                raise WorkerFailed
            try:
                with self._request_scope:
                    return await self._exchange(
                        TranscriptionRequest(size=len(audio), most_seconds=max_seconds), audio, progress
                    )
                raise WorkerFailed
            except TimeoutError as error:
                raise WorkerStalled from error
            except (OSError, msgspec.MsgspecError) as error:
                raise WorkerFailed(str(error)) from error

    async def stop(self) -> None:
        """Stop the process, even if it is busy. Takes at most a second; cancelling doesn't shorten this time."""
        self._request_scope.cancel()
        self._exit_task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._exit_task])

    async def _exchange(
        self, request: TranscriptionRequest, audio: bytes, progress: Callable[[str], None]
    ) -> TranscriptionReply:
        with anyio.fail_after(STALL_SECONDS):
            await self._process.send(msgspec.json.encode(request) + b"\n" + audio)
        while True:
            with anyio.fail_after(STALL_SECONDS):
                answer = msgspec.json.decode(await self._read_line(), type=TranscriptionReply)
            if answer.get("done"):
                return answer
            progress(answer.get("text", ""))

    async def _read_line(self) -> bytes:
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                return bytes(line)
            piece = await self._process.receive()
            if not piece or len(self._unread) > MAX_LINE_BYTES:
                raise WorkerFailed
            self._unread += piece

    async def _wait_for_exit(self) -> None:
        try:
            await self._process.tree.wait_until_root_exited()
        finally:
            with anyio.CancelScope(shield=True):
                async with self._lock:  # the pipes must not be closed while a request uses them
                    await self._process.stop()


class Moonshine:
    """Transcribes with the model from the package `moonshine-voice`.

    Worker processes are started on demand, or earlier by `warm_up`. An idle worker exits after `idle_seconds`, the
    first worker after twelve times as long. A worker that died is replaced.
    """

    def __init__(self, settings: VoiceSettings, spawn: Spawn, idle_seconds: float = IDLE_SECONDS) -> None:
        self._settings = settings
        self._spawn = spawn
        self._idle_seconds = idle_seconds
        self._slots = anyio.Semaphore(choose_worker_count())  # first come, first served
        self._workers: set[WorkerProcess] = set()
        self._idle: deque[WorkerProcess] = deque()
        self._is_closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the running workers."""
        return frozenset(worker.pid for worker in self._workers if worker.is_alive)

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        """Return the transcript. `progress` receives the partial transcript of a long recording.

        Cancelling kills only the worker that handles this recording.

        Raises:
            SpeechError: The data is not audio, or it could not be transcribed.
        """
        self._validate(audio)
        async with self._slots:
            # Try twice, because an idle worker may have exited just now.
            with contextlib.suppress(WorkerFailed):
                return _to_utterance(await self._transcribe_once(audio, progress))
            try:
                return _to_utterance(await self._transcribe_once(audio, progress))
            except WorkerFailed as error:
                raise SpeechError(
                    "The recording could not be transcribed: speech recognition crashed. "
                    f"Record it again or type your message. {ALTERNATIVE_HINT}"
                ) from error

    def warm_up(self) -> None:
        """Start a worker for the next recording, without waiting. Errors are reported with that recording."""
        has_idle_worker = any(worker.is_alive for worker in self._idle)
        if not self._is_closed and not self._find_missing_packages() and not has_idle_worker:
            with contextlib.suppress(SpeechError):
                self._idle.append(self._start_worker())

    async def close(self) -> None:
        """Stop all workers, within a second."""
        self._is_closed = True
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        self._workers.clear()

    def _validate(self, audio: Audio) -> None:
        if problem := find_settings_problem(self._settings) or self._find_missing_packages():
            raise SpeechError(problem)
        if len(audio.data) > MAX_RECORDING_BYTES:
            raise SpeechError(f"The recording is larger than {MAX_RECORDING_BYTES >> 20} MB. Send it in shorter parts.")
        if not audio.data:
            raise SpeechError("The recording is empty. Record it again.")

    def _find_missing_packages(self) -> str:
        if find_spec("moonshine_voice") is None or find_spec("av") is None:
            return f"Speech recognition is not installed. Run: pip install 'hark-agent[voice]'. {ALTERNATIVE_HINT}"
        return ""

    async def _transcribe_once(self, audio: Audio, progress: Callable[[str], None]) -> TranscriptionReply:
        worker = self._acquire_worker()
        is_done = False
        try:
            answer = await worker.transcribe(audio.data, MAX_RECORDING_SECONDS, progress)
            is_done = True
        except WorkerStalled as error:
            raise SpeechError(
                "The recording could not be transcribed: it took too long. Send shorter parts or type your message."
            ) from error
        finally:
            if not is_done:
                await worker.stop()
                self._workers.discard(worker)
                self.warm_up()  # so that the next recording doesn't wait
        self._idle.append(worker)
        return answer

    def _acquire_worker(self) -> WorkerProcess:
        if self._is_closed:
            raise SpeechError("Hark is shutting down and can't transcribe the recording. Send it again later.")
        while self._idle:
            worker = self._idle.popleft()  # the worker that was idle longest is the most likely to be ready
            if worker.is_alive:
                return worker
            self._workers.discard(worker)
        return self._start_worker()

    def _start_worker(self) -> WorkerProcess:
        idle_seconds = self._idle_seconds * (1 if self.pids else FIRST_WORKER_IDLE_FACTOR)
        command = [sys.executable, "-I", moonshine_worker.__file__, str(idle_seconds)]
        environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        try:
            process = self._spawn(command, Path("/"), environment, lambda _: None)
        except (OSError, ValueError) as error:
            raise SpeechError(f"Could not start speech recognition: {error}. {ALTERNATIVE_HINT}") from error
        worker = WorkerProcess(process)
        self._workers.add(worker)
        return worker


def choose_worker_count() -> int:
    """Return the number of recordings to transcribe in parallel."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(MIN_WORKERS, min(MAX_WORKERS, cores // 2))


def _to_utterance(reply: TranscriptionReply) -> Utterance:
    reason = reply.get("reason", "")
    match reply.get("error", ""):
        case "":
            return Utterance(reply.get("text", ""), reply.get("seconds", 0.0), "en")
        case "audio":
            raise SpeechError(f"The recording could not be transcribed: {reason}. Record it again or type a message.")
        case _:
            raise SpeechError(f"Speech recognition failed: {reason}. {ALTERNATIVE_HINT}")
