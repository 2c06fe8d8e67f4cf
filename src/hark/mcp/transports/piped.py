"""The way to a server that is a program of ours: lines of JSON through its pipes."""

import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from hark.mcp.failures import ServerFailure
from hark.mcp.logs import ServerLog
from hark.mcp.settings import ServerSettings, expanded
from hark.mcp.transports.transport import MESSAGE_BYTES, McpTransport, Streams
from hark.processes.piped import PipedProcess, Spawn

REST_SECONDS = 0.1
WAITING_MESSAGES = 1000
SHOWN_CHARACTERS = 500
WORDS_CHARACTERS = 200
WORDS_BYTES = 2000

# What programs need of the surroundings, and no more: keys and tokens are handed out by `env` alone.
# fmt: off
_INHERITED = frozenset((
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "HTTP_PROXY",
    "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS", "NODE_PATH", "NVM_DIR", "JAVA_HOME", "LD_LIBRARY_PATH",
))
# fmt: on
_INHERITED_KINDS = ("LC_", "XDG_", "NPM_CONFIG_", "UV_", "PIP_")


class Lines:
    """Takes bytes as they come and gives whole lines."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Give the lines that end in this piece.

        Raises:
            ServerFailure: A line is too long to be kept.
        """
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join((*self._pieces, end))
            self._pieces, self._size = [], 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > MESSAGE_BYTES:
            raise ServerFailure(f"it sent a message of more than {MESSAGE_BYTES // 1024 // 1024} MB")


def read_message(line: bytes) -> SessionMessage | None:
    """Return the message in a line; None when it is none."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


class PipedLink(McpTransport):
    """Starts the program, and ends it whole."""

    def __init__(self, settings: ServerSettings, workspace: Path, log: ServerLog, spawn: Spawn) -> None:
        self._settings = settings
        self._workspace = workspace
        self._log = log
        self._spawn = spawn
        self._process: PipedProcess | None = None
        self._left: tuple[str, ...] = ()
        self._last_words = b""
        self._is_silent = False
        self._has_ended = False

    @property
    def pid(self) -> int | None:
        """The server's process."""
        return self._process.pid if self._process else None

    def why(self) -> str:
        """Say how it ended, and its last words; nothing when it was us who ended it."""
        code = self._process.exit_code if self._process else None
        if code is None or not self._has_ended:
            return f"could not be ended: {', '.join(self._left)}" if self._left else ""
        how = f"killed by signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
        lines = self._last_words.decode(errors="replace").strip().splitlines()
        return f"{how}: {lines[-1].strip()[:WORDS_CHARACTERS]}" if lines else how

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Streams]:
        """Start the program."""
        process = self._process = self._start()
        reading = anyio.CancelScope()
        to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        # With room for more, so that one that does not read holds up nobody who writes.
        outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](WAITING_MESSAGES)
        try:
            with to_us, incoming, outgoing, from_us:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read, process, to_us, reading)
                    tasks.start_soon(self._write, process, from_us, reading)
                    tasks.start_soon(self._watch, process, reading)
                    try:
                        yield incoming, outgoing
                    finally:
                        tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the stop itself
                if self._is_silent:
                    with anyio.move_on_after(REST_SECONDS):
                        await self._watch(process, reading)
                self._left = tuple(await process.stop())

    def _start(self) -> PipedProcess:
        settings = self._settings
        folder = self._workspace / Path(settings.cwd).expanduser()
        if not folder.is_dir():
            raise ServerFailure(f"its directory {folder} does not exist", is_final=True)
        environment = {**_inherited(), **expanded(settings.env)}
        command = str(Path(settings.command).expanduser()) if settings.command.startswith("~") else settings.command
        self._log.note(f"started: {settings.command}")
        try:
            return self._spawn([command, *settings.args], folder, environment, self._hear)
        except (OSError, ValueError) as error:
            raise ServerFailure(f"its command {settings.command!r} can't be started: {error}") from error

    def _hear(self, piece: bytes) -> None:
        self._last_words = (self._last_words + self._log.write(piece))[-WORDS_BYTES:]

    async def _read(
        self,
        process: PipedProcess,
        to_us: MemoryObjectSendStream[SessionMessage | Exception],
        reading: anyio.CancelScope,
    ) -> None:
        lines = Lines()
        with to_us, reading:
            while piece := await process.receive():
                for line in lines.feed(piece):
                    message = read_message(line)
                    if message is not None:
                        await to_us.send(message)
                    elif line.strip():
                        # Many servers greet or log where their messages belong.
                        self._log.note(f"not a message: {line[:SHOWN_CHARACTERS]!r}")
            self._is_silent = True

    async def _write(
        self, process: PipedProcess, from_us: MemoryObjectReceiveStream[SessionMessage], reading: anyio.CancelScope
    ) -> None:
        with from_us:
            async for message in from_us:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await process.send(f"{line}\n".encode(errors="replace"))
                except OSError:
                    reading.deadline = anyio.current_time() + REST_SECONDS
                    return

    async def _watch(self, process: PipedProcess, reading: anyio.CancelScope) -> None:
        """See the program's end, when something that it started holds its output open too."""
        await process.tree.exited()
        self._has_ended = True
        reading.deadline = anyio.current_time() + REST_SECONDS


def _inherited() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _INHERITED or name.upper().startswith(_INHERITED_KINDS)
    }
