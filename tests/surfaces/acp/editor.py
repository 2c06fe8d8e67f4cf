"""A fake editor that drives a real `hark acp` process over pipes and validates its messages with the ACP schema."""

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
MAX_LINE_BYTES = 64 * 1024 * 1024


class Editor:
    """A fake editor with its agent process. Requests are numbered; received messages are stored in order."""

    def __init__(self, home: Path, folder: Path, server: ModelServer) -> None:
        self.home = home
        self.folder = folder
        self.server = server
        self.received: list[Message] = []
        self._process: asyncio.subprocess.Process | None = None
        self._numbers = 0
        self._message_arrived = asyncio.Event()
        self._reader_task: asyncio.Task[None] | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        variables = {"HARK_HOME": str(self.home), "HOME": str(self.home), "PYTHONPATH": str(Path.cwd())}
        return inherited | variables | NO_CERTIFICATES

    async def wait_until_queued(self, session: str, text: str) -> None:
        """Wait until `hark queue` lists a message with this text for a session."""
        output = b""
        while text.encode() not in output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hark.cli.main", "queue", session),
                stdout=asyncio.subprocess.PIPE,
                env=self._environment,
            )
            output, _ = await process.communicate()

    def configure(self, base_url: str = "", text: str = "") -> None:
        """Write a settings file with one route to the fake model, followed by `text`."""
        self.home.mkdir(parents=True, exist_ok=True)
        route = f'[[routes]]\nname = "main"\nbase_url = "{base_url or self.server.base_url}"\nmodel = "fake"\n'
        (self.home / "config.toml").write_text(route + text)

    async def start(self) -> None:
        """Start the agent process."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *COMMAND,
            stdin=pipe,
            stdout=pipe,
            stderr=None,
            cwd=self.home,
            env=self._environment,
            limit=MAX_LINE_BYTES,
        )
        self._reader_task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()).endswith(b"\n"):
            message: Message = json.loads(line)
            message["at"] = time.perf_counter()
            _validate(message)
            self.received.append(message)
            self._message_arrived.set()

    # Sent messages.

    def make_request(self, method: str, **params: Any) -> Message:
        """Return a new request, without sending it."""
        self._numbers += 1
        return {"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params}

    def make_prompt(self, session: str, text: str) -> Message:
        """Return a new prompt request with one text block, without sending it."""
        return self.make_request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def make_cancel(self, session: str) -> Message:
        """Return a cancel notification, without sending it."""
        return {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}

    def send(self, *messages: Message) -> float:
        """Send messages in one write and return the current time."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        return time.perf_counter()

    def answer_permission(self, request: Message, option: str) -> None:
        """Answer a permission request."""
        outcome = {"outcome": "selected", "optionId": option}
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}})

    @property
    def output(self) -> asyncio.ReadTransport:
        """The pipe with the agent's output, which can be paused or closed."""
        transport = cast("asyncio.SubprocessTransport", vars(self.process)["_transport"])
        pipe = transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        return pipe

    def write(self, data: bytes) -> None:
        """Send raw bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    async def call(self, method: str, **params: Any) -> Any:
        """Send a request, wait for its response and return the result."""
        request = self.make_request(method, **params)
        self.send(request)
        response = await self.wait_for_response(request)
        assert "result" in response, response
        return response["result"]

    # Received messages.

    async def wait_for_message(self, matches: Callable[[Message], bool]) -> Message:
        """Wait for the first received message that matches."""

        async def next_message() -> None:
            self._message_arrived.clear()
            waiters = [asyncio.ensure_future(self._message_arrived.wait()), self._running_reader]
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
            waiters[0].cancel()
            if self._running_reader.done():
                self._running_reader.result()
                assert any(map(matches, self.received)), f"the agent exited; its last messages: {self.received[-5:]}"

        found = await until(
            lambda: [message for message in self.received if matches(message)],
            changed=next_message,
            shows=lambda: self.received[-5:],
        )
        return found[0]

    @property
    def _running_reader(self) -> "asyncio.Task[None]":
        assert self._reader_task is not None
        return self._reader_task

    async def wait_for_response(self, request: Message) -> Message:
        """Wait for the response to a request."""
        return await self.wait_for_message(
            lambda message: message.get("id") == request["id"] and "method" not in message
        )

    async def wait_for_stop_reason(self, request: Message) -> str:
        """Wait for a prompt's response and return its stop reason."""
        response = await self.wait_for_response(request)
        assert "result" in response, response
        return str(response["result"]["stopReason"])

    def updates(self, kind: str = "", session: str = "") -> list[Message]:
        """Return the received updates, filtered by kind and session if given."""
        all_params = [message["params"] for message in self.received if message.get("method") == "session/update"]
        return [
            params["update"]
            for params in all_params
            if kind in ("", params["update"]["sessionUpdate"]) and session in ("", params["sessionId"])
        ]

    async def wait_for_update(self, kind: str, matches: Callable[[Message], bool] = lambda _: True) -> Message:
        """Wait for the first update of a kind that matches."""

        def is_match(message: Message) -> bool:
            update: Message = message.get("params", {}).get("update", {})
            return update.get("sessionUpdate") == kind and matches(update)

        message = await self.wait_for_message(is_match)
        return message["params"]["update"]

    async def wait_for_permission_request(self, number: int = 1) -> Message:
        """Wait for the nth permission request, counted from 1."""

        def requests() -> list[Message]:
            return [message for message in self.received if message.get("method") == "session/request_permission"]

        await self.wait_for_message(lambda _: len(requests()) >= number)
        return requests()[number - 1]

    def agent_text(self, session: str = "") -> str:
        """Return the message text received from the agent so far."""
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk", session))

    # Sessions and exit.

    async def new_session(self, folder: Path | None = None) -> str:
        """Create a session and return its id."""
        result = await self.call("session/new", cwd=str(folder or self.folder), mcpServers=[])
        return str(result["sessionId"])

    async def close_input(self) -> float:
        """Close the agent's input, wait until the agent exits, and return the seconds that this took."""
        assert self.process.stdin is not None
        started = time.perf_counter()
        self.process.stdin.close()
        await self.process.wait()
        return time.perf_counter() - started

    async def kill(self) -> None:
        """Kill the agent process if it is still running."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reader_task is not None:
            with suppress(asyncio.CancelledError):
                await self._reader_task


@asynccontextmanager
async def open_editor(
    path: Path, script: Sequence[Behaviour], *, base_url: str = "", settings: str = ""
) -> AsyncGenerator[tuple[Editor, str]]:
    """Open a fake editor with one session and a strict fake model that plays `script`."""
    folder = path / "work"
    folder.mkdir()
    async with ModelServer(script, is_strict=True) as server:
        editor = Editor(path / "home", folder, server)
        editor.configure(base_url, settings)
        await editor.start()
        try:
            await editor.call("initialize", protocolVersion=1, clientCapabilities={})
            yield editor, await editor.new_session()
        finally:
            await editor.kill()


def _validate(message: Message) -> None:
    """Assert that a message from the agent conforms to the ACP schema."""
    match message.get("method"):
        case "session/update":
            SessionNotification.model_validate(message["params"])
        case "session/request_permission":
            RequestPermissionRequest.model_validate(message["params"])
        case None:
            assert "result" in message or "error" in message, message
        case other:
            raise AssertionError(f"an editor has no method {other}")
