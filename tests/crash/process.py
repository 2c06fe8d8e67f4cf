"""A worker process as seen by the driver: it receives orders, sends replies, and can be killed."""

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
    """A worker process. `on_reply` is called with each order and its reply."""

    def __init__(self, process: asyncio.subprocess.Process, on_reply: Callable[[Order, Reply], None]) -> None:
        self.pid = process.pid
        self.is_ready = asyncio.Event()
        self.unanswered: dict[int, Order] = {}
        self.ready_seconds: float | None = None
        self.receipt_seconds: float | None = None
        self._process = process
        self._on_reply = on_reply
        self._number = READY
        self._started = time.perf_counter()
        self._first_order_seconds = 0.0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, options: list[str], home: Path, on_reply: Callable[[Order, Reply], None]) -> "Worker":
        environment = {name: value for name, value in os.environ.items() if name != COOKIE_NAME}
        errors = os.open(home / "stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.worker", "--home", str(home), *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
        os.close(errors)
        return cls(process, on_reply)

    @property
    def is_alive(self) -> bool:
        return not self._reading.done()

    def send(self, order: Order) -> None:
        """Send an order to the worker. An order to a dead worker gets no reply."""
        if self._number == READY:
            self._first_order_seconds = time.perf_counter() - self._started
        self._number += 1
        order.number = self._number
        self.unanswered[order.number] = order
        pipe = self._process.stdin
        assert pipe is not None
        if not pipe.is_closing():
            pipe.write(msgspec.json.encode(order) + b"\n")

    async def kill(self) -> None:
        """Kill the worker with SIGKILL. Return after it has exited and all its output has been read."""
        if self._process.returncode is None:
            # Don't use the process object's own kill: it would reap a dead process before asyncio can.
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        await self.wait_for_exit()

    async def wait_for_exit(self) -> int:
        """Wait for the worker to exit, and return its exit code."""
        code = await self._process.wait()
        await self._reading
        return code

    async def finish(self) -> int:
        """Signal end of input to the worker, wait for its exit, and return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self.wait_for_exit()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                return  # the worker died in the middle of a line
            reply = REPLIES.decode(line)
            elapsed = time.perf_counter() - self._started
            if reply.number == READY:
                self.ready_seconds = elapsed
                self.is_ready.set()
                continue
            order = self.unanswered.pop(reply.number)
            if reply.receipt and self.receipt_seconds is None and self.ready_seconds is not None:
                # The time without an order does not count.
                self.receipt_seconds = elapsed - max(0.0, self._first_order_seconds - self.ready_seconds)
            self._on_reply(order, reply)
