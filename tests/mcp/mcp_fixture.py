"""Running MCP servers for tests."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_context import ServerPaths
from hark.mcp.servers import Servers
from hark.mcp.settings import read_servers
from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.protocol.tool import Question, ToolError, ToolOutput
from tests.tools.fake_context import FakeContext
from tests.waiting import until

SMALL_SERVER_FILE = Path(__file__).with_name("small_server.py")
QUICK_RETRIES = RetryPolicy(first_seconds=0.02, rest_seconds=0.0)
SETTLE_LIMIT_SECONDS = 30.0


class ServersFixture:
    """MCP servers in a separate home directory, and the notices about them."""

    def __init__(
        self, home: Path, servers: Mapping[str, Mapping[str, Any]], retry_policy: RetryPolicy = QUICK_RETRIES
    ) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        self.notices: list[str] = []
        self.cookie = current_owner(home).home
        paths = ServerPaths.in_home(home, home)
        spawn = create_spawner(current_owner(home))
        self.servers = Servers(
            read_servers({"wait_seconds": SETTLE_LIMIT_SECONDS, "servers": servers}),
            paths,
            spawn,
            self.notices.append,
            retry_policy,
        )
        self.context = FakeContext(home)

    async def call(self, name: str, context: FakeContext | None = None, /, **arguments: Any) -> ToolOutput:
        tool = self.servers.get(name)
        assert tool is not None, f"{name} is not on offer"
        try:
            return await tool.run(arguments, context or self.context)
        except ToolError as error:
            return error.as_output()

    def pid(self, name: str) -> int:
        pid = next(status.pid for status in self.servers.status() if status.name == name)
        assert pid is not None, f"{name} is not running"
        return pid

    def read_log(self, name: str) -> str:
        return (self.home / "logs" / f"mcp-{name}.log").read_text()


class AnsweringUser(FakeContext):
    """A fake call context whose user gives the listed answers in order and then never answers again."""

    def __init__(self, workspace: Path, *answers: str, session: str = "session") -> None:
        super().__init__(workspace)
        self.session = session
        self.asked = asyncio.Event()
        self.withdrawn = 0
        self._answers = list(answers)

    async def ask(self, question: Question) -> str:
        self.questions.append(question)
        self.asked.set()
        try:
            return self._answers.pop(0) if self._answers else await asyncio.Future[str]()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


def small_server_settings(*options: str, **settings: Any) -> dict[str, Any]:
    """Return the settings for the small test server. The options select its behaviour."""
    return {"command": sys.executable, "args": ["-S", "-E", str(SMALL_SERVER_FILE), *options], **settings}


@asynccontextmanager
async def starting_servers(
    home: Path, retry_policy: RetryPolicy = QUICK_RETRIES, /, **servers: Mapping[str, Any]
) -> AsyncGenerator[ServersFixture]:
    """Yield servers that may still be starting."""
    fixture = ServersFixture(home, servers, retry_policy)
    running = asyncio.create_task(fixture.servers.run())
    try:
        yield fixture
    finally:
        running.cancel()
        await asyncio.wait([running])


@asynccontextmanager
async def running_servers(
    home: Path, retry_policy: RetryPolicy = QUICK_RETRIES, /, **servers: Mapping[str, Any]
) -> AsyncGenerator[ServersFixture]:
    """Yield servers that are connected or have failed."""
    async with starting_servers(home, retry_policy, **servers) as fixture:
        await fixture.servers.wait_until_ready("session", lambda _: None)
        yield fixture


async def wait_for_note(file: Path, text: str) -> str:
    """Wait until the small server's note file contains the text, and return the whole file."""
    await until(lambda: file.exists() and text in file.read_text(), shows=lambda: file.exists() and file.read_text())
    return file.read_text()  # noqa: ASYNC240
