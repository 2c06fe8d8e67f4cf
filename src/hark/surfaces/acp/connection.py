"""The connection to one editor over stdin and stdout."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, cast

import anyio
from acp import Agent, run_agent

from hark.surfaces.acp.agent import EditorAgent, EditorServices

MAX_LINE_BYTES = 256 * 1024 * 1024
TOO_LONG = b"a line that is too long"


class LineReader(asyncio.Protocol):
    """Splits the input into lines of up to `max_line_bytes`, until the input ends or `stop` is called."""

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._lines: deque[bytes] = deque()
        self._line_chunks: list[bytes] = []
        self._line_bytes = 0
        self._is_closed = False
        self._line_arrived: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        """Add bytes that may start or end anywhere in a line."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add_chunk(line)
            self._finish_line()
        self._add_chunk(rest)
        if lines:
            self._wake()

    def eof_received(self) -> None:
        """Signal end of input. A last line without a newline counts as a line."""
        self._finish_line()
        self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Signal end of input."""
        self._close()

    def stop(self) -> None:
        """Stop reading and discard the lines that were not read yet."""
        self._lines.clear()
        self._close()

    async def next_line(self) -> bytes | None:
        """Return the next line, or None at the end of the input. Only one task may call this at a time."""
        while not self._lines:
            if self._is_closed:
                return None
            self._line_arrived = asyncio.get_running_loop().create_future()
            await self._line_arrived
        return self._lines.popleft()

    def _add_chunk(self, chunk: bytes) -> None:
        self._line_bytes += len(chunk)
        if self._line_bytes <= self._max_line_bytes:
            self._line_chunks.append(chunk)
        else:
            self._line_chunks.clear()

    def _finish_line(self) -> None:
        line = b"".join(self._line_chunks) if self._line_bytes <= self._max_line_bytes else TOO_LONG
        self._line_chunks.clear()
        self._line_bytes = 0
        if line.strip() and not self._is_closed:
            self._lines.append(line)

    def _close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        if self._line_arrived is not None and not self._line_arrived.done():
            self._line_arrived.set_result(None)


ANSWER_TIMEOUT_SECONDS = 2.0
CLOSE_TIMEOUT_SECONDS = 0.5
PARSE_ERROR = -32700
INVALID_REQUEST = -32600

METHODS_WITH_SERVERS = ("session/new", "session/load")

Message = dict[str, Any]


class OutputStream(Protocol):
    """A byte stream for output, such as an asyncio.StreamWriter."""

    def write(self, data: bytes) -> None:
        """Buffer bytes for writing. Never waits."""
        ...

    async def drain(self) -> None:
        """Wait until the buffer has room for more bytes.

        Raises:
            ConnectionError: The reader has closed its end.
        """
        ...

    def close(self) -> None:
        """Close the stream after everything is written."""
        ...

    async def wait_closed(self) -> None:
        """Wait until the stream is closed."""
        ...


class EditorTransport:
    """The message transport to an editor. Delivers messages in order, and responds to invalid lines with an error.

    At end of input, `on_end` is called. Pending requests are still answered, for a bounded time.
    """

    def __init__(self, reader: LineReader, output: OutputStream, on_end: Callable[[], None]) -> None:
        self._reader = reader
        self._output = output
        self._on_end = on_end
        self._pending_requests = 0
        self._answered = asyncio.Event()

    async def receive(self) -> Message | None:
        """Return the next message, or None at the end of the input."""
        while (line := await self._reader.next_line()) is not None:
            message = self._parse(line)
            if message is not None:
                return message
        self._on_end()
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                while self._pending_requests:
                    self._answered.clear()
                    await self._answered.wait()
        return None

    async def send(self, message: Message) -> None:
        """Write a message. Waits while the editor is not reading. If the connection is closed, reading stops too."""
        self._write(message)
        if "method" not in message:
            self._pending_requests -= 1
            self._answered.set()
        try:
            await self._output.drain()
        except ConnectionError:
            self._reader.stop()

    async def close(self) -> None:
        """Write the buffered messages, for a bounded time."""
        self._output.close()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self._output.wait_closed()

    def _write(self, message: Message) -> None:
        self._output.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _parse(self, line: bytes) -> Message | None:
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError):
            self._send_error(PARSE_ERROR, "Parse error: this line is not valid JSON")
            return None
        if not isinstance(message, dict) or not _is_valid(cast("Message", message)):
            self._send_error(INVALID_REQUEST, "Invalid request: each line must be one JSON-RPC message")
            return None
        return self._prepare_request(cast("Message", message))

    def _prepare_request(self, message: Message) -> Message:
        if "method" in message and "id" in message:
            self._pending_requests += 1
        params: object = message.get("params")
        if isinstance(params, dict):
            arguments = cast("Message", params)
            # The library would pass these as arguments, which could replace the real ones.
            arguments.pop("_meta", None)
            if message.get("method") in METHODS_WITH_SERVERS:
                arguments.setdefault("mcpServers", [])  # a client without MCP servers may omit the list
        return message

    def _send_error(self, code: int, message: str) -> None:
        self._write({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


def _is_valid(message: Message) -> bool:
    request_id: object = message.get("id")
    is_valid_id = request_id is None or (isinstance(request_id, str | int | float) and not isinstance(request_id, bool))
    if "method" in message:
        return is_valid_id and isinstance(message["method"], str)
    return is_valid_id and ("result" in message or "error" in message)


async def serve_editor(
    services: EditorServices, reader: LineReader, output: OutputStream, version: str, on_end: Callable[[], None]
) -> None:
    """Serve the editor until it disconnects or `LineReader.stop` is called. Then `on_end` is called immediately.

    Running turns are interrupted, and pending requests are still answered, within a bounded time. Cancelling leaves
    the sessions unchanged.
    """
    async with anyio.create_task_group() as tasks:
        agent = EditorAgent(services, version, tasks)

        def handle_end() -> None:
            on_end()
            agent.stop_all_prompts()

        transport = EditorTransport(reader, output, handle_end)
        # The agent lacks methods that it doesn't offer, such as fork. The library answers for those.
        await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
        tasks.cancel_scope.cancel()
