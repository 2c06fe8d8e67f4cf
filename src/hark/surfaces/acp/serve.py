"""One editor, from its first line to its last."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, cast

import anyio
from acp import Agent, run_agent

from hark.surfaces.acp.agent import EditorAgent, EditorServices

LONGEST_BYTES = 256 * 1024 * 1024
TOO_LONG = b"a line that is too long"


class Incoming(asyncio.Protocol):
    """Lines of any length that a person may mean, pictures and all. It ends with the input, or by `end`."""

    def __init__(self, *, longest_bytes: int = LONGEST_BYTES) -> None:
        self._longest_bytes = longest_bytes
        self._lines: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._came: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        """Take what was read, wherever it was cut."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._add(line)
            self._finish_line()
        self._add(rest)
        if whole:
            self._wake()

    def eof_received(self) -> None:
        """The input is over; what was not ended by a newline is a line too."""
        self._finish_line()
        self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The input is over."""
        self._close()

    def end(self) -> None:
        """Read no further, not even what has come."""
        self._lines.clear()
        self._close()

    async def line(self) -> bytes | None:
        """Return the next line, at once when it is there; None when there will be none. For one reader."""
        while not self._lines:
            if self._is_over:
                return None
            self._came = asyncio.get_running_loop().create_future()
            await self._came
        return self._lines.popleft()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._longest_bytes:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _finish_line(self) -> None:
        line = b"".join(self._pieces) if self._size <= self._longest_bytes else TOO_LONG
        self._pieces.clear()
        self._size = 0
        if line.strip() and not self._is_over:
            self._lines.append(line)

    def _close(self) -> None:
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_result(None)


OWED_SECONDS = 2.0
CLOSE_SECONDS = 0.5
PARSE_ERROR = -32700
INVALID_REQUEST = -32600

WITH_SERVERS = ("session/new", "session/load")

Message = dict[str, Any]


class Out(Protocol):
    """Where bytes go: an asyncio.StreamWriter is one."""

    def write(self, data: bytes) -> None:
        """Take bytes; never waits."""
        ...

    async def drain(self) -> None:
        """Return when there is room for more.

        Raises:
            ConnectionError: Nobody reads any more.
        """
        ...

    def close(self) -> None:
        """Let go when all is written."""
        ...

    async def wait_closed(self) -> None:
        """Return when it is let go."""
        ...


class Transport:
    """Keeps order: messages are handed on as they were read. What is no message is answered here.

    At the end of the input `on_end` is called, and what the editor asked is still answered, for a bounded time.
    """

    def __init__(self, incoming: Incoming, out: Out, on_end: Callable[[], None]) -> None:
        self._incoming = incoming
        self._out = out
        self._on_end = on_end
        self._owed = 0
        self._answered = asyncio.Event()

    async def receive(self) -> Message | None:
        """Return the next message; None when there will be none."""
        while (line := await self._incoming.line()) is not None:
            message = self._read(line)
            if message is not None:
                return message
        self._on_end()
        with suppress(TimeoutError):
            async with asyncio.timeout(OWED_SECONDS):
                while self._owed:
                    self._answered.clear()
                    await self._answered.wait()
        return None

    async def send(self, message: Message) -> None:
        """Write a message; waits while the editor does not read. To an editor that has left, nothing is said."""
        self._write(message)
        if "method" not in message:
            self._owed -= 1
            self._answered.set()
        try:
            await self._out.drain()
        except ConnectionError:
            self._incoming.end()

    async def close(self) -> None:
        """Write what waits, for a bounded time."""
        self._out.close()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._out.wait_closed()

    def _write(self, message: Message) -> None:
        self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _read(self, line: bytes) -> Message | None:
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError):
            self._refuse(PARSE_ERROR, "Parse error: this line is no JSON")
            return None
        if not isinstance(message, dict) or not _is_sane(cast("Message", message)):
            self._refuse(INVALID_REQUEST, "Invalid request: a line is one JSON-RPC message")
            return None
        return self._taken(cast("Message", message))

    def _taken(self, message: Message) -> Message:
        if "method" in message and "id" in message:
            self._owed += 1
        params: object = message.get("params")
        if isinstance(params, dict):
            given = cast("Message", params)
            # The library would hand these on as arguments, where they could take the place of the real ones.
            given.pop("_meta", None)
            if message.get("method") in WITH_SERVERS:
                given.setdefault("mcpServers", [])  # no reason to refuse a client that has none to tell of
        return message

    def _refuse(self, code: int, words: str) -> None:
        self._write({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}})


def _is_sane(message: Message) -> bool:
    name: object = message.get("id")
    is_named = name is None or (isinstance(name, str | int | float) and not isinstance(name, bool))
    if "method" in message:
        return is_named and isinstance(message["method"], str)
    return is_named and ("result" in message or "error" in message)


async def serve_editor(
    services: EditorServices, incoming: Incoming, out: Out, version: str, on_end: Callable[[], None]
) -> None:
    """Answer until the editor leaves or `Incoming.end` is called; `on_end` is told at once.

    What runs is interrupted then, and what was asked is still answered, within bounded time. Cancelling leaves
    the sessions as they are.
    """
    async with anyio.create_task_group() as tasks:
        agent = EditorAgent(services, version, tasks)

        def leave() -> None:
            on_end()
            agent.end()

        transport = Transport(incoming, out, leave)
        # It lacks what it does not offer, such as a fork: the library answers for that.
        await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
        tasks.cancel_scope.cancel()
