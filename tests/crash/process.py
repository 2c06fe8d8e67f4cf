"""A worker process as its driver sees it: orders in, replies out, and a sudden end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from hark.processes.cookies import COOKIE_NAME
from tests.crash.wire import READY, Order, Reply

REPLIES = msgspec.json.Decoder(Reply)
START_SECONDS = 20.0


class Worker:
    """One process; `heard` gets each of its replies with its order."""

    def __init__(self, process: asyncio.subprocess.Process, heard: Callable[[Order, Reply], None]) -> None:
        self.pid = process.pid
        self.is_ready = asyncio.Event()
        self.unanswered: dict[int, Order] = {}
        self.ready_seconds: float | None = None
        self.receipt_seconds: float | None = None
        self._process = process
        self._heard = heard
        self._number = READY
        self._started = time.perf_counter()
        self._asked = 0.0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, words: list[str], home: Path, heard: Callable[[Order, Reply], None]) -> "Worker":
        environment = {name: value for name, value in os.environ.items() if name != COOKIE_NAME}
        errors = os.open(home / "stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.worker", "--home", str(home), *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
        os.close(errors)
        return cls(process, heard)

    @property
    def is_alive(self) -> bool:
        return not self._reading.done()

    def order(self, order: Order) -> None:
        """Send an order; a dead worker hears nothing."""
        if self._number == READY:
            self._asked = time.perf_counter() - self._started
        self._number += 1
        order.number = self._number
        self.unanswered[order.number] = order
        pipe = self._process.stdin
        assert pipe is not None
        if not pipe.is_closing():
            pipe.write(msgspec.json.encode(order) + b"\n")

    async def kill(self) -> None:
        """End it with SIGKILL; return when it is gone and all that it said was heard."""
        if self._process.returncode is None:
            # Not by the process's own kill, which would reap one that is dead already before asyncio can.
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        await self.ended()

    async def ended(self) -> int:
        """Return its exit code when it has ended."""
        code = await self._process.wait()
        await self._reading
        return code

    async def finish(self) -> int:
        """Close the line: it ends by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self.ended()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                return  # it died in the middle of a word
            reply = REPLIES.decode(line)
            elapsed = time.perf_counter() - self._started
            if reply.number == READY:
                self.ready_seconds = elapsed
                self.is_ready.set()
                continue
            order = self.unanswered.pop(reply.number)
            if reply.receipt and self.receipt_seconds is None and self.ready_seconds is not None:
                # One that nobody asked for a while does not count as slow.
                self.receipt_seconds = elapsed - max(0.0, self._asked - self.ready_seconds)
            self._heard(order, reply)
