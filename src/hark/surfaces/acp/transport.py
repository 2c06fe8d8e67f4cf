"""The connection as the protocol's library wants it: messages in, messages out, each on a line."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, cast

from hark.surfaces.acp.incoming import Incoming

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
