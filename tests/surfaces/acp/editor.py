"""An editor that drives a real `hark acp` over pipes, and checks all that it says against the protocol's schema."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from acp.schema import RequestPermissionRequest, SessionNotification

from tests.cli.command_line import INHERITED, NO_CERTIFICATES
from tests.fakes.models.behaviours import Behaviour
from tests.fakes.models.server import ModelServer
from tests.waiting import until

Message = dict[str, Any]
COMMAND = ("-m", "hark.cli.main", "acp")
LINE_BYTES = 64 * 1024 * 1024


class Editor:
    """One editor and its agent's process. Requests are numbered; what comes in is kept in order."""

    def __init__(self, home: Path, folder: Path, server: ModelServer) -> None:
        self.home = home
        self.folder = folder
        self.server = server
        self.received: list[Message] = []
        self._process: asyncio.subprocess.Process | None = None
        self._numbers = 0
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        own = {"HARK_HOME": str(self.home), "HOME": str(self.home), "PYTHONPATH": str(Path.cwd())}
        return inherited | own | NO_CERTIFICATES

    async def until_waiting(self, session: str, words: str) -> None:
        """Return when a message with these words waits at a session, as `hark queue` tells."""
        told = b""
        while words.encode() not in told:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hark.cli.main", "queue", session),
                stdout=asyncio.subprocess.PIPE,
                env=self._environment,
            )
            told, _ = await process.communicate()

    def configure(self, base_url: str = "", text: str = "") -> None:
        """Write the settings: one route to the fake model, then this text."""
        self.home.mkdir(parents=True, exist_ok=True)
        route = f'[[routes]]\nname = "main"\nbase_url = "{base_url or self.server.base_url}"\nmodel = "fake"\n'
        (self.home / "config.toml").write_text(route + text)

    async def start(self) -> None:
        """Start the agent's process."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *COMMAND,
            stdin=pipe,
            stdout=pipe,
            stderr=None,
            cwd=self.home,
            env=self._environment,
            limit=LINE_BYTES,
        )
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()).endswith(b"\n"):
            message: Message = json.loads(line)
            message["at"] = time.perf_counter()
            _check(message)
            self.received.append(message)
            self._changed.set()

    # What goes out.

    def request(self, method: str, **params: Any) -> Message:
        """Return a request, to be sent."""
        self._numbers += 1
        return {"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}

    def prompt(self, session: str, text: str) -> Message:
        """Return a prompt of one text."""
        return self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def cancel(self, session: str) -> Message:
        """Return a cancel."""
        return {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}

    def send(self, *messages: Message) -> float:
        """Send messages in one write; return when."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        return time.perf_counter()

    def choose(self, asked: Message, option: str) -> None:
        """Answer a permission request."""
        outcome = {"outcome": "selected", "optionId": option}
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}})

    @property
    def output(self) -> asyncio.ReadTransport:
        """The pipe that the agent writes to: it can be paused, or closed for good."""
        transport = cast("asyncio.SubprocessTransport", vars(self.process)["_transport"])
        pipe = transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        return pipe

    def write(self, data: bytes) -> None:
        """Send bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        request = self.request(method, **params)
        self.send(request)
        response = await self.response(request)
        assert "result" in response, response
        return response["result"]

    # What comes in.

    async def until(self, is_it: Callable[[Message], bool]) -> Message:
        """Return the first message that is it."""

        async def next_message() -> None:
            self._changed.clear()
            waits = [asyncio.ensure_future(self._changed.wait()), self._reader]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            waits[0].cancel()
            if self._reader.done():
                self._reader.result()
                assert any(map(is_it, self.received)), f"the agent has left; it said {self.received[-5:]}"

        found = await until(
            lambda: [message for message in self.received if is_it(message)],
            changed=next_message,
            shows=lambda: self.received[-5:],
        )
        return found[0]

    @property
    def _reader(self) -> "asyncio.Task[None]":
        assert self._reading is not None
        return self._reading

    async def response(self, request: Message) -> Message:
        """Return the response to a request."""
        return await self.until(lambda message: message.get("id") == request["id"] and "method" not in message)

    async def stop_reason(self, request: Message) -> str:
        """Return how a prompt ended."""
        response = await self.response(request)
        assert "result" in response, response
        return str(response["result"]["stopReason"])

    def updates(self, kind: str = "", session: str = "") -> list[Message]:
        """Return the updates of a kind."""
        every = [message["params"] for message in self.received if message.get("method") == "session/update"]
        return [
            params["update"]
            for params in every
            if kind in ("", params["update"]["sessionUpdate"]) and session in ("", params["sessionId"])
        ]

    async def update(self, kind: str, is_it: Callable[[Message], bool] = lambda _: True) -> Message:
        """Return the first update of a kind that is it."""

        def fits(message: Message) -> bool:
            update: Message = message.get("params", {}).get("update", {})
            return update.get("sessionUpdate") == kind and is_it(update)

        message = await self.until(fits)
        return message["params"]["update"]

    async def asked(self, number: int = 1) -> Message:
        """Return the permission request of that number, from 1."""

        def requests() -> list[Message]:
            return [message for message in self.received if message.get("method") == "session/request_permission"]

        await self.until(lambda _: len(requests()) >= number)
        return requests()[number - 1]

    def text(self, session: str = "") -> str:
        """Return all that the agent said."""
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk", session))

    # The whole.

    async def new_session(self, folder: Path | None = None) -> str:
        """Return a new session."""
        result = await self.ask("session/new", cwd=str(folder or self.folder), mcpServers=[])
        return str(result["sessionId"])

    async def leave(self) -> float:
        """Close its input; return how long it took to leave."""
        assert self.process.stdin is not None
        started = time.perf_counter()
        self.process.stdin.close()
        await self.process.wait()
        return time.perf_counter() - started

    async def end(self) -> None:
        """Have it gone, whatever a test did."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            with suppress(asyncio.CancelledError):
                await self._reading


@asynccontextmanager
async def opened(
    path: Path, script: Sequence[Behaviour], *, base_url: str = "", settings: str = ""
) -> AsyncGenerator[tuple[Editor, str]]:
    """An editor with one open session, and a strict model that plays a script."""
    folder = path / "work"
    folder.mkdir()
    async with ModelServer(script, is_strict=True) as server:
        editor = Editor(path / "home", folder, server)
        editor.configure(base_url, settings)
        await editor.start()
        try:
            await editor.ask("initialize", protocolVersion=1, clientCapabilities={})
            yield editor, await editor.new_session()
        finally:
            await editor.end()


def _check(message: Message) -> None:
    """Nothing that the protocol does not know may come out."""
    match message.get("method"):
        case "session/update":
            SessionNotification.model_validate(message["params"])
        case "session/request_permission":
            RequestPermissionRequest.model_validate(message["params"])
        case None:
            assert "result" in message or "error" in message, message
        case other:
            raise AssertionError(f"an editor has no method {other}")
