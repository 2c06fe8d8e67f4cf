"""All MCP servers of the app: started once, shared by every session."""

from collections.abc import Callable, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from hark.mcp.failures import RetryPolicy
from hark.mcp.logs import ServerLog
from hark.mcp.offers import SEPARATOR, Names, RemoteTool, ServerState, ServerStatus, plain_name
from hark.mcp.server import McpServer
from hark.mcp.server_context import ServerPaths, ServerPlace
from hark.mcp.settings import ServerSettings
from hark.mcp.tools import McpTool, prompt_tool, resource_tool
from hark.processes.piped import Spawn
from hark.protocol.tool import Tool

LOOK_SECONDS = 0.1
SILENT_SECONDS = 1.0


class Servers:
    """The servers by name. Nothing that happens to a turn or a session restarts one; one that fails fails alone."""

    def __init__(
        self,
        settings: Mapping[str, ServerSettings],
        places: ServerPaths,
        spawn: Spawn,
        notice: Callable[[str], None] = lambda _: None,
        backoff: RetryPolicy | None = None,
    ) -> None:
        """`notice` gets lines that a person should see."""
        self._places = places
        self._spawn = spawn
        self._notice = notice
        self._patience = backoff or RetryPolicy()
        self._tools: dict[str, Tool] | None = None
        self._tasks: TaskGroup | None = None
        self._ends: dict[McpServer, anyio.Event] = {}
        self._servers = {name: self._made(name, one) for name, one in settings.items()}

    async def run(self) -> None:
        """Own all servers until cancelled; then they are ended whole, side by side, in less than a second."""
        async with anyio.create_task_group() as self._tasks:
            for server in self._servers.values():
                self._start(server)
            await anyio.sleep_forever()

    def change(self, settings: Mapping[str, ServerSettings]) -> None:
        """Have these servers from now on. One of which nothing has changed is not touched; waits for nothing.

        One that is gone is not on offer any more, and ended once the calls that it has under way are done.
        """
        before = self._servers
        same = {name: server for name, server in before.items() if settings.get(name) == server.settings}
        self._servers = {name: same.get(name) or self._made(name, one) for name, one in settings.items()}
        self._forget()
        for name, server in before.items():
            if name not in same and server in self._ends:
                self._ends[server].set()
        for name, server in self._servers.items():
            if name not in same:
                self._start(server)

    def _made(self, name: str, settings: ServerSettings) -> McpServer:
        log = ServerLog(self._places.logs / f"mcp-{name}.log", list(settings.secrets()))
        place = ServerPlace(name, settings, self._places, log, self._spawn)
        return McpServer(place, self._patience, self._notice, self._forget)

    def _start(self, server: McpServer) -> None:
        if self._tasks is not None and server.settings.enabled:
            self._ends[server] = anyio.Event()
            self._tasks.start_soon(self._keep, server, self._ends[server])

    async def _keep(self, server: McpServer, is_gone: anyio.Event) -> None:
        """Run a server until it is gone from the settings, and done with what it had been asked."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run)
            await is_gone.wait()
            await server.unused()
            tasks.cancel_scope.cancel()
        del self._ends[server]

    async def settled(self, seconds: float) -> None:
        """Return when of every server is known what it offers, or that it fails; after `seconds` at the latest.

        One that shows no sign of life is not waited for any longer: now, and at the next start.
        """
        with anyio.move_on_after(seconds):
            for server in self._enabled():
                await self._settled(server)

    async def _settled(self, server: McpServer) -> None:
        last_sign = anyio.current_time()
        while not server.settled.is_set():
            with anyio.move_on_after(LOOK_SECONDS):
                await server.settled.wait()
            if server.has_progressed():
                last_sign = anyio.current_time()
            if anyio.current_time() - last_sign > SILENT_SECONDS:
                server.give_up_waiting()

    async def reached(self, *states: ServerState) -> None:
        """Return when every server stands in one of these ways, or has just done so. Safe to cancel."""
        for server in self._enabled():
            await server.reached(*states)

    def tools(self) -> Sequence[Tool]:
        """Return what is on offer now, in the settings' order and then each server's own."""
        if self._tools is None:
            self._tools = self._named()
        return tuple(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return a tool by its name; one that waits, when its server has not said yet what it offers."""
        self.tools()
        assert self._tools is not None
        return self._tools.get(name) or self._unknown(name)

    def status(self) -> list[ServerStatus]:
        """Return how they stand."""
        return [server.status for server in self._servers.values()]

    def _enabled(self) -> list[McpServer]:
        return [server for server in self._servers.values() if server.settings.enabled]

    def _forget(self) -> None:
        self._tools = None

    def _named(self) -> dict[str, Tool]:
        names = Names()
        tools: list[Tool] = [
            McpTool(names.give(server.name, remote.name), remote, server)
            for server in self._enabled()
            for remote in server.tools
        ]
        if having := [server for server in self._enabled() if server.offer and server.offer.has_resources]:
            tools.append(resource_tool(having))
        if having := [server for server in self._enabled() if server.offer and server.offer.has_prompts]:
            tools.append(prompt_tool(having))
        return {tool.spec.name: tool for tool in tools}

    def _unknown(self, name: str) -> Tool | None:
        """Return a tool of a server that is still on its way up, and was never there before."""
        for server in self._enabled():
            tool = name.removeprefix(f"{server.name}{SEPARATOR}")
            is_its_own = tool not in ("", name) and name == plain_name(server.name, tool)
            if is_its_own and server.offer is None and server.settings.is_offered(tool):
                return McpTool(name, RemoteTool(tool, f"A tool of {server.name}.", {"type": "object"}), server)
        return None
