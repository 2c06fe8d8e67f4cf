"""A server's tool as a tool of the agent."""

from collections.abc import Mapping
from typing import Any

from hark.mcp.offers import RemoteTool
from hark.mcp.requests import CallTool
from hark.mcp.server import McpServer
from hark.protocol.tool import CallContext, ToolOutput, ToolSpec

GRACE_SECONDS = 0.1


class McpTool:
    """Calls a tool of a server under a name that models can use."""

    def __init__(self, name: str, remote: RemoteTool, server: McpServer) -> None:
        self._remote = remote.name
        self._server = server
        self.spec = ToolSpec(
            name=name,
            description=remote.description,
            parameters=remote.parameters,
            is_changing=remote.is_changing,
            grace_seconds=GRACE_SECONDS,
        )

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Call it. Cancelling tells the server, and returns at once whatever the server does."""
        return await self._server.request(CallTool(self._remote, dict(arguments)), context)
