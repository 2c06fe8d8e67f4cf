"""The transport to a local server: lines of JSON through the pipes of a process that Hark starts."""

import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from hark.mcp.logs import ServerLog
from hark.mcp.retry_policy import ServerFailure
from hark.mcp.settings import ServerSettings, expand_variables
from hark.mcp.transports.transport import MAX_MESSAGE_BYTES, McpTransport, MessageStreams
from hark.processes.piped_process import PipedProcess, Spawn

DRAIN_SECONDS = 0.1
MAX_QUEUED_MESSAGES = 1000
MAX_SHOWN_CHARACTERS = 500
MAX_REASON_CHARACTERS = 200
STDERR_TAIL_BYTES = 2000

# Only the variables that programs generally need. Keys and tokens are passed only through `env`.
# fmt: off
_INHERITED = frozenset((
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "HTTP_PROXY",
    "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS", "NODE_PATH", "NVM_DIR", "JAVA_HOME", "LD_LIBRARY_PATH",
))
# fmt: on
_INHERITED_PREFIXES = ("LC_", "XDG_", "NPM_CONFIG_", "UV_", "PIP_")


class LineSplitter:
    """Splits a stream of bytes into complete lines."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that end in this piece.

        Raises:
            ServerFailure: A line is too long.
        """
        *ends, tail = piece.split(b"\n")
        for end in ends:
            yield b"".join((*self._pieces, end))
            self._pieces, self._size = [], 0
        if tail:
            self._pieces.append(tail)
            self._size += len(tail)
        if self._size > MAX_MESSAGE_BYTES:
            raise ServerFailure(f"the server sent a message of more than {MAX_MESSAGE_BYTES // 1024 // 1024} MB")


def parse_message(line: bytes) -> SessionMessage | None:
    """Return the message in a line, or None if the line isn't an MCP message."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


class PipedTransport(McpTransport):
    """A transport that starts the server's program, and stops it with all its descendants."""

    def __init__(self, settings: ServerSettings, workspace: Path, log: ServerLog, spawn: Spawn) -> None:
        self._settings = settings
        self._workspace = workspace
        self._log = log
        self._spawn = spawn
        self._process: PipedProcess | None = None
        self._leftovers: tuple[str, ...] = ()
        self._stderr_tail = b""
        self._has_closed_output = False
        self._has_ended = False

    @property
    def pid(self) -> int | None:
        """The process id of the server."""
        return self._process.pid if self._process else None

    def end_reason(self) -> str:
        """Return the exit status with the last line of stderr, or "" if Hark stopped the program."""
        code = self._process.exit_code if self._process else None
        if code is None or not self._has_ended:
            return f"could not be stopped: {', '.join(self._leftovers)}" if self._leftovers else ""
        status = f"killed by signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
        lines = self._stderr_tail.decode(errors="replace").strip().splitlines()
        return f"{status}: {lines[-1].strip()[:MAX_REASON_CHARACTERS]}" if lines else status

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MessageStreams]:
        """Start the program, and stop it on exit."""
        process = self._process = self._start()
        reading = anyio.CancelScope()
        to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        # The buffer keeps a server that doesn't read from blocking senders.
        outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](MAX_QUEUED_MESSAGES)
        try:
            with to_us, incoming, outgoing, from_us:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read, process, to_us, reading)
                    tasks.start_soon(self._write, process, from_us, reading)
                    tasks.start_soon(self._watch_exit, process, reading)
                    try:
                        yield incoming, outgoing
                    finally:
                        tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):  # `stop` has its own time limit
                if self._has_closed_output:
                    with anyio.move_on_after(DRAIN_SECONDS):
                        await self._watch_exit(process, reading)
                self._leftovers = tuple(await process.stop())

    def _start(self) -> PipedProcess:
        settings = self._settings
        directory = self._workspace / Path(settings.cwd).expanduser()
        if not directory.is_dir():
            raise ServerFailure(f"the directory {directory} does not exist", is_final=True)
        environment = {**_inherited_environment(), **expand_variables(settings.env)}
        command = str(Path(settings.command).expanduser()) if settings.command.startswith("~") else settings.command
        self._log.note(f"started: {settings.command}")
        try:
            return self._spawn([command, *settings.args], directory, environment, self._on_stderr)
        except (OSError, ValueError) as error:
            raise ServerFailure(f"the command {settings.command!r} can't be started: {error}") from error

    def _on_stderr(self, piece: bytes) -> None:
        self._stderr_tail = (self._stderr_tail + self._log.write(piece))[-STDERR_TAIL_BYTES:]

    async def _read(
        self,
        process: PipedProcess,
        to_us: MemoryObjectSendStream[SessionMessage | Exception],
        reading: anyio.CancelScope,
    ) -> None:
        lines = LineSplitter()
        with to_us, reading:
            while piece := await process.receive():
                for line in lines.feed(piece):
                    message = parse_message(line)
                    if message is not None:
                        await to_us.send(message)
                    elif line.strip():
                        # Many servers write greetings or logs to stdout.
                        self._log.note(f"not a message: {line[:MAX_SHOWN_CHARACTERS]!r}")
            self._has_closed_output = True

    async def _write(
        self, process: PipedProcess, from_us: MemoryObjectReceiveStream[SessionMessage], reading: anyio.CancelScope
    ) -> None:
        with from_us:
            async for message in from_us:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await process.send(f"{line}\n".encode(errors="replace"))
                except OSError:
                    reading.deadline = anyio.current_time() + DRAIN_SECONDS
                    return

    async def _watch_exit(self, process: PipedProcess, reading: anyio.CancelScope) -> None:
        """Detect the program's exit even if one of its child processes keeps its output open."""
        await process.tree.wait_until_root_exited()
        self._has_ended = True
        reading.deadline = anyio.current_time() + DRAIN_SECONDS


def _inherited_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _INHERITED or name.upper().startswith(_INHERITED_PREFIXES)
    }
