"""Running servers for tests, and what they say."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hark.mcp.failures import RetryPolicy
from hark.mcp.server_context import ServerPaths
from hark.mcp.servers import Servers
from hark.mcp.settings import read_servers
from hark.processes.cookies import this_process
from hark.processes.piped import spawner
from hark.protocol.tool import Question, ToolError, ToolOutput
from tests.tools.context import FakeContext
from tests.waiting import until

SMALL = Path(__file__).with_name("small_server.py")
QUICK = RetryPolicy(first_seconds=0.02, rest_seconds=0.0)
LIMIT_SECONDS = 30.0


class World:
    """Servers that run, in a home of their own."""

    def __init__(self, home: Path, servers: Mapping[str, Mapping[str, Any]], backoff: RetryPolicy = QUICK) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        self.notices: list[str] = []
        self.cookie = this_process(home).home
        places = ServerPaths.in_home(home, home)
        spawn = spawner(this_process(home))
        self.servers = Servers(read_servers({"servers": servers}), places, spawn, self.notices.append, backoff)
        self.context = FakeContext(home)

    async def call(self, name: str, context: FakeContext | None = None, /, **arguments: Any) -> ToolOutput:
        tool = self.servers.get(name)
        assert tool is not None, f"{name} is not on offer"
        try:
            return await tool.run(arguments, context or self.context)
        except ToolError as error:
            return error.as_output()

    def pid(self, name: str) -> int:
        pid = next(one.pid for one in self.servers.status() if one.name == name)
        assert pid is not None, f"{name} does not run"
        return pid

    def log(self, name: str) -> str:
        return (self.home / "logs" / f"mcp-{name}.log").read_text()


class Person(FakeContext):
    """A context whose person answers with one text after the other; without any left, they think for ever."""

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


def small(*words: str, **more: Any) -> dict[str, Any]:
    """The settings of a small server that behaves as the words say."""
    return {"command": sys.executable, "args": ["-S", "-E", str(SMALL), *words], **more}


@asynccontextmanager
async def starting(home: Path, backoff: RetryPolicy = QUICK, /, **servers: Mapping[str, Any]) -> AsyncGenerator[World]:
    """Servers that may still be on their way up."""
    world = World(home, servers, backoff)
    running = asyncio.create_task(world.servers.run())
    try:
        yield world
    finally:
        running.cancel()
        await asyncio.wait([running])


@asynccontextmanager
async def running(home: Path, backoff: RetryPolicy = QUICK, /, **servers: Mapping[str, Any]) -> AsyncGenerator[World]:
    """Servers that are up, or have failed."""
    async with starting(home, backoff, **servers) as world:
        await world.servers.settled(LIMIT_SECONDS)
        yield world


async def noted(file: Path, text: str) -> str:
    """Return a server's notes when this text stands in them."""
    await until(lambda: file.exists() and text in file.read_text(), shows=lambda: file.exists() and file.read_text())
    return file.read_text()  # noqa: ASYNC240
