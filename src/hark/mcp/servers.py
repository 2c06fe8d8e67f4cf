"""All MCP servers of the app, which are started once and shared by every session."""

from collections.abc import Callable, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from hark.mcp.logs import ServerLog
from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server import McpServer
from hark.mcp.server_context import ServerContext, ServerPaths
from hark.mcp.server_offer import SEPARATOR, RemoteTool, ServerState, ServerStatus, ToolNames, make_tool_name
from hark.mcp.settings import ServerSettings
from hark.mcp.tools import McpTool, create_prompt_tool, create_resource_tool
from hark.processes.piped_process import Spawn
from hark.protocol.tool import Tool

POLL_SECONDS = 0.1
MAX_SILENCE_SECONDS = 1.0


class Servers:
    """The servers by name. Turns and sessions never restart a server. A failing server affects only its own calls."""

    def __init__(
        self,
        settings: Mapping[str, ServerSettings],
        paths: ServerPaths,
        spawn: Spawn,
        notify: Callable[[str], None] = lambda _: None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        """`notify` receives messages for the user."""
        self._paths = paths
        self._spawn = spawn
        self._notify = notify
        self._retry_policy = retry_policy or RetryPolicy()
        self._tools: dict[str, Tool] | None = None
        self._tasks: TaskGroup | None = None
        self._removed: dict[McpServer, anyio.Event] = {}
        self._servers = {name: self._create_server(name, server_settings) for name, server_settings in settings.items()}

    async def run(self) -> None:
        """Run all servers until cancelled, then stop them in parallel, within a second."""
        async with anyio.create_task_group() as self._tasks:
            for server in self._servers.values():
                self._start(server)
            await anyio.sleep_forever()

    def apply_settings(self, settings: Mapping[str, ServerSettings]) -> None:
        """Start added servers, replace changed ones, and leave the others untouched. Returns without waiting.

        A removed server's tools disappear immediately. It is stopped when its calls in progress have ended.
        """
        before = self._servers
        unchanged = {name: server for name, server in before.items() if settings.get(name) == server.settings}
        self._servers = {name: unchanged.get(name) or self._create_server(name, new) for name, new in settings.items()}
        self._clear_tools()
        for name, server in before.items():
            if name not in unchanged and server in self._removed:
                self._removed[server].set()
        for name, server in self._servers.items():
            if name not in unchanged:
                self._start(server)

    def _create_server(self, name: str, settings: ServerSettings) -> McpServer:
        log = ServerLog(self._paths.logs / f"mcp-{name}.log", list(settings.secrets()))
        context = ServerContext(name, settings, self._paths, log, self._spawn)
        return McpServer(context, self._retry_policy, self._notify, self._clear_tools)

    def _start(self, server: McpServer) -> None:
        if self._tasks is not None and server.settings.enabled:
            self._removed[server] = anyio.Event()
            self._tasks.start_soon(self._run_server, server, self._removed[server])

    async def _run_server(self, server: McpServer, removed: anyio.Event) -> None:
        """Run a server until it is removed from the settings and its calls in progress have ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run)
            await removed.wait()
            await server.wait_until_unused()
            tasks.cancel_scope.cancel()
        del self._removed[server]

    async def wait_until_settled(self, timeout_seconds: float) -> None:
        """Wait until each server has listed its tools or failed, for at most `timeout_seconds`.

        Stop waiting for a server without any activity, and don't wait for it at the next start either.
        """
        with anyio.move_on_after(timeout_seconds):
            for server in self._enabled_servers():
                await self._wait_until_settled(server)

    async def _wait_until_settled(self, server: McpServer) -> None:
        last_activity_at = anyio.current_time()
        while not server.settled.is_set():
            with anyio.move_on_after(POLL_SECONDS):
                await server.settled.wait()
            if server.has_progressed():
                last_activity_at = anyio.current_time()
            if anyio.current_time() - last_activity_at > MAX_SILENCE_SECONDS:
                server.stop_waiting()

    async def wait_for_state(self, *states: ServerState) -> None:
        """Wait until every server has been in one of these states. Safe to cancel."""
        for server in self._enabled_servers():
            await server.wait_for_state(*states)

    def tools(self) -> Sequence[Tool]:
        """Return all servers' tools, in the order of the settings and of each server's tool list."""
        if self._tools is None:
            self._tools = self._build_tools()
        return tuple(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return a tool by name. While its server's tools are unknown, return a placeholder that waits for them."""
        self.tools()
        assert self._tools is not None
        return self._tools.get(name) or self._make_placeholder_tool(name)

    def status(self) -> list[ServerStatus]:
        """Return the status of every server."""
        return [server.status for server in self._servers.values()]

    def _enabled_servers(self) -> list[McpServer]:
        return [server for server in self._servers.values() if server.settings.enabled]

    def _clear_tools(self) -> None:
        self._tools = None

    def _build_tools(self) -> dict[str, Tool]:
        names = ToolNames()
        tools: list[Tool] = [
            McpTool(names.allocate(server.name, remote.name), remote, server)
            for server in self._enabled_servers()
            for remote in server.tools
        ]
        if providers := [server for server in self._enabled_servers() if server.offer and server.offer.has_resources]:
            tools.append(create_resource_tool(providers))
        if providers := [server for server in self._enabled_servers() if server.offer and server.offer.has_prompts]:
            tools.append(create_prompt_tool(providers))
        return {tool.spec.name: tool for tool in tools}

    def _make_placeholder_tool(self, name: str) -> Tool | None:
        """Return a placeholder for a tool whose server is still starting and has no cached tools."""
        for server in self._enabled_servers():
            tool = name.removeprefix(f"{server.name}{SEPARATOR}")
            is_name_of_server = tool not in ("", name) and name == make_tool_name(server.name, tool)
            if is_name_of_server and server.offer is None and server.settings.is_offered(tool):
                return McpTool(name, RemoteTool(tool, f"A tool of {server.name}.", {"type": "object"}), server)
        return None
