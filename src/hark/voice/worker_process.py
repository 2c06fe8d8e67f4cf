"""One process of the embedded speech recognition, and how it is talked with."""

import asyncio
from collections.abc import Callable

import anyio
import msgspec

from hark.processes.piped import PipedProcess
from hark.voice.moonshine_worker import TranscriptionRequest

STALL_SECONDS = 60.0
LINE_BYTES = 4 << 20


class WorkerReply(msgspec.Struct):
    """What the process says, see `moonshine_worker.Answer`."""

    text: str = ""
    seconds: float = 0.0
    done: bool = False
    error: str = ""
    reason: str = ""


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

    async def transcribe(self, audio: bytes, most_seconds: float, progress: Callable[[str], None]) -> WorkerReply:
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

    async def _answer(self, job: TranscriptionRequest, audio: bytes, progress: Callable[[str], None]) -> WorkerReply:
        with anyio.fail_after(STALL_SECONDS):
            await self._process.send(msgspec.json.encode(job) + b"\n" + audio)
        while True:
            with anyio.fail_after(STALL_SECONDS):
                answer = msgspec.json.decode(await self._line(), type=WorkerReply)
            if answer.done:
                return answer
            progress(answer.text)

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
