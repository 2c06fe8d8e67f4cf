"""All MCP servers of the app, which are started once and shared by every session."""

from collections.abc import Callable, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from hark.mcp.logs import ServerLog
from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server import McpServer
from hark.mcp.server_context import ServerContext, ServerPaths
from hark.mcp.server_offer import SEPARATOR, RemoteTool, ServerState, ServerStatus, ToolNames, make_tool_name
from hark.mcp.settings import ServerSettings
from hark.mcp.tools import McpTool, create_prompt_tool, create_resource_tool
from hark.processes.piped_process import Spawn
from hark.protocol.tool import Tool

RETRY_WAIT_SECONDS = 2.0


class Servers:
    """The servers by name. Turns never restart a running server. A failing server affects only its own calls."""

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
        """Start added servers, replace changed ones, and leave the others running. Returns without waiting.

        An unchanged server that has failed is restarted.
        A removed server's tools disappear immediately. It is stopped when its calls in progress have ended.
        """
        before = self._servers
        unchanged = {name: server for name, server in before.items() if _has_same_settings(server, settings.get(name))}
        self._servers = {name: unchanged.get(name) or self._create_server(name, new) for name, new in settings.items()}
        self._clear_tools()
        for name, server in before.items():
            if name not in unchanged and server in self._removed:
                self._removed[server].set()
        for name, server in self._servers.items():
            server.settings = settings[name]  # unchanged except for the time that turns wait for it
            if name in unchanged:
                server.restart_if_down()
            else:
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

    async def wait_until_ready(self, session: str, notify: Callable[[str], None]) -> None:
        """Wait for servers that are starting for the first time or were restarted by the user. Safe to cancel.

        The wait for each server is limited by its settings, and skipped after it was in vain once in this session. If
        the session is new to a failed server, the server is retried, and the wait for it is short. `notify` receives
        messages about servers that are awaited, missing or available again.
        """
        waits = {server: seconds for server in self._enabled_servers() if (seconds := _wait_seconds(server, session))}
        if waits:
            names, seconds = ", ".join(server.name for server in waits), max(waits.values())
            notify(f"Waiting for MCP servers to start: {names} (at most {seconds:g} s).")
            async with anyio.create_task_group() as tasks:
                for server, server_seconds in waits.items():
                    tasks.start_soon(server.wait_until_attempted, server_seconds)
        for server in self._enabled_servers():
            server.inform(session, notify)

    def restart(self, name: str, listener: Callable[[str], None]) -> str:
        """Restart a server now. `listener` receives the result. Return a sentence about the request."""
        server = self._servers.get(name)
        if server is None:
            return f"No MCP server named {name!r}. Configured servers: {', '.join(self._servers) or 'none'}."
        if not server.settings.enabled:
            return f"The MCP server {name} is disabled in the settings."
        server.restart(listener)
        return f"Restarting the MCP server {name}."

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


def _has_same_settings(server: McpServer, settings: ServerSettings | None) -> bool:
    """Return whether the settings are the same, apart from the time that turns wait for the server."""
    return settings is not None and replace(settings, wait_seconds=server.settings.wait_seconds) == server.settings


def _wait_seconds(server: McpServer, session: str) -> float:
    """Return how long a step of this session waits for the server. Retries a failed server for a new session."""
    if not server.settled.is_set():
        return 0.0 if server.is_informed(session) else server.settings.wait_seconds
    is_retried = server.offer is None and not server.is_informed(session) and server.retry_if_failed()
    return min(RETRY_WAIT_SECONDS, server.settings.wait_seconds) if is_retried else 0.0
