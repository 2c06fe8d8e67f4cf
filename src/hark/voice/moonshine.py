"""The embedded speech recognition: English, on this machine, in processes that can be killed."""

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

from hark.processes.piped import PipedProcess, Spawn
from hark.protocol.speech import Audio, SpeechError, Utterance
from hark.voice import moonshine_worker
from hark.voice.moonshine_worker import TranscriptionReply, TranscriptionRequest
from hark.voice.settings import VoiceSettings, complaint

STALL_SECONDS = 60.0
LINE_BYTES = 4 << 20
MOST_BYTES = 64 << 20
MOST_SECONDS = 1800.0
IDLE_SECONDS = 300.0
FIRST_IDLE_TIMES = 12  # as long is one kept ready, so that a conversation with pauses need not wait for it again
FEWEST_AT_ONCE, MOST_AT_ONCE = 2, 4  # one long recording must not keep a short one waiting
OTHERWISE = 'Or set [voice] stt = "openai" and a base_url to use another one.'
# What a program may need to run here; no secrets.
PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


class WorkerGone(Exception):
    """The process ended, or said what it should not, before its answer was done."""


class WorkerStalled(Exception):
    """The process gave no sign for too long."""


class WorkerProcess:
    """A running process, which does one job at a time. Whoever made it calls `end`."""

    def __init__(self, process: PipedProcess) -> None:
        self._process = process
        self._in_use = anyio.Lock()
        self._work = anyio.CancelScope()
        self._unread = bytearray()
        # It may end by itself when it was idle for long; what is left of it then goes, too.
        self._life = asyncio.create_task(self._live(), name="speech recognition")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it may still take a job."""
        return not self._life.done()

    async def transcribe(
        self, audio: bytes, most_seconds: float, progress: Callable[[str], None]
    ) -> TranscriptionReply:
        """Return its last answer. After anything but that, it must be ended: it may be in the middle of its work.

        Raises:
            WorkerGone: It ended before.
            WorkerStalled: It gives no sign any more.
        """
        async with self._in_use:
            if not self.is_alive:
                raise WorkerGone
            try:
                with self._work:
                    return await self._answer(
                        TranscriptionRequest(size=len(audio), most_seconds=most_seconds), audio, progress
                    )
                raise WorkerGone
            except TimeoutError as error:
                raise WorkerStalled from error
            except (OSError, msgspec.MsgspecError) as error:
                raise WorkerGone(str(error)) from error

    async def end(self) -> None:
        """End it now, whatever it does. Takes milliseconds, at most a second; cancelling does not hasten it."""
        self._work.cancel()
        self._life.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._life])

    async def _answer(
        self, job: TranscriptionRequest, audio: bytes, progress: Callable[[str], None]
    ) -> TranscriptionReply:
        with anyio.fail_after(STALL_SECONDS):
            await self._process.send(msgspec.json.encode(job) + b"\n" + audio)
        while True:
            with anyio.fail_after(STALL_SECONDS):
                answer = msgspec.json.decode(await self._line(), type=TranscriptionReply)
            if answer.get("done"):
                return answer
            progress(answer.get("text", ""))

    async def _line(self) -> bytes:
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                return bytes(line)
            piece = await self._process.receive()
            if not piece or len(self._unread) > LINE_BYTES:
                raise WorkerGone
            self._unread += piece

    async def _live(self) -> None:
        try:
            await self._process.exited()
        finally:
            with anyio.CancelScope(shield=True):
                async with self._in_use:  # nobody may wait for its pipes when they are closed
                    await self._process.stop()


class Moonshine:
    """Transcribes with the model from the package `moonshine-voice`.

    Its processes are started when they are needed, or before by `warm_up`. Without work they end after
    `idle_seconds`, the first after twelve times that; they are started again when they died.
    """

    def __init__(self, settings: VoiceSettings, spawn: Spawn, idle_seconds: float = IDLE_SECONDS) -> None:
        self._settings = settings
        self._spawn = spawn
        self._idle_seconds = idle_seconds
        self._places = anyio.Semaphore(at_once())  # first come, first served
        self._workers: set[WorkerProcess] = set()
        self._idle: deque[WorkerProcess] = deque()
        self._is_closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that run now."""
        return frozenset(worker.pid for worker in self._workers if worker.is_alive)

    async def transcribe(self, audio: Audio, progress: Callable[[str], None] = lambda _: None) -> Utterance:
        """Return the spoken words; `progress` gets the words so far of a long recording.

        Cancelling kills the process that is at it, and no other.

        Raises:
            SpeechError: It is no audio, or nobody could transcribe it.
        """
        self._check(audio)
        async with self._places:
            # Twice, because one that had been idle may have ended just now.
            with contextlib.suppress(WorkerGone):
                return _utterance(await self._tried(audio, progress))
            try:
                return _utterance(await self._tried(audio, progress))
            except WorkerGone as error:
                raise SpeechError(
                    "The recording could not be transcribed: the speech recognition broke down over it. "
                    f"Record it again, or type it. {OTHERWISE}"
                ) from error

    def warm_up(self) -> None:
        """Have a process ready for the next recording, without waiting for it; what is wrong is told by that one."""
        if not self._is_closed and not self._missing() and not any(worker.is_alive for worker in self._idle):
            with contextlib.suppress(SpeechError):
                self._idle.append(self._start())

    async def close(self) -> None:
        """End its processes, within a second."""
        self._is_closed = True
        await asyncio.gather(*(worker.end() for worker in self._workers))
        self._workers.clear()

    def _check(self, audio: Audio) -> None:
        if wrong := complaint(self._settings) or self._missing():
            raise SpeechError(wrong)
        if len(audio.data) > MOST_BYTES:
            raise SpeechError(f"The recording is larger than {MOST_BYTES >> 20} MB. Send it in parts.")
        if not audio.data:
            raise SpeechError("The recording is empty. Record it again.")

    def _missing(self) -> str:
        if find_spec("moonshine_voice") is None or find_spec("av") is None:
            return f"Speech recognition is not installed. Install it: pip install 'hark-agent[voice]'. {OTHERWISE}"
        return ""

    async def _tried(self, audio: Audio, progress: Callable[[str], None]) -> TranscriptionReply:
        worker = self._take()
        is_done = False
        try:
            answer = await worker.transcribe(audio.data, MOST_SECONDS, progress)
            is_done = True
        except WorkerStalled as error:
            raise SpeechError(
                "The recording could not be transcribed: it took too long. Send it again in shorter parts, or type it."
            ) from error
        finally:
            if not is_done:
                await worker.end()
                self._workers.discard(worker)
                self.warm_up()  # so that the next recording need not wait
        self._idle.append(worker)
        return answer

    def _take(self) -> WorkerProcess:
        if self._is_closed:
            raise SpeechError("The speech recognition is closed, as Hark is about to end. Send it again afterwards.")
        while self._idle:
            worker = self._idle.popleft()  # the one with the longest rest is the likeliest to be ready
            if worker.is_alive:
                return worker
            self._workers.discard(worker)
        return self._start()

    def _start(self) -> WorkerProcess:
        idle_seconds = self._idle_seconds * (1 if self.pids else FIRST_IDLE_TIMES)
        words = [sys.executable, "-I", moonshine_worker.__file__, str(idle_seconds)]
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        try:
            process = self._spawn(words, Path("/"), environment, lambda _: None)
        except (OSError, ValueError) as error:
            raise SpeechError(f"The speech recognition can't be started: {error}. {OTHERWISE}") from error
        worker = WorkerProcess(process)
        self._workers.add(worker)
        return worker


def at_once() -> int:
    """Return how many recordings are transcribed at a time."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(FEWEST_AT_ONCE, min(MOST_AT_ONCE, cores // 2))


def _utterance(answer: TranscriptionReply) -> Utterance:
    reason = answer.get("reason", "")
    match answer.get("error", ""):
        case "":
            return Utterance(answer.get("text", ""), answer.get("seconds", 0.0), "en")
        case "audio":
            raise SpeechError(f"The recording could not be transcribed: {reason}. Record it again, or type it.")
        case _:
            raise SpeechError(f"The speech recognition can't be run: {reason}. {OTHERWISE}")
