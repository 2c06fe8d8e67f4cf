"""The two tools that all servers share: their resources, and their prompts."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from hark.mcp.requests import GetPrompt, ListPrompts, ListResources, ReadResource, Wish
from hark.mcp.server import McpServer
from hark.protocol.tool import CallContext, ToolError, ToolOutput, ToolSpec

RESOURCE = "mcp_resource"
PROMPT = "mcp_prompt"


class ResourceTool:
    """Lists and reads what these servers have."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self._servers = {server.name: server for server in servers}
        self.spec = ToolSpec(
            RESOURCE,
            "Resources (files, records, pages) of MCP servers: list them, or read one by its URI.",
            _parameters(("list", "read"), self._servers, {"uri": {"type": "string", "description": "For read."}}),
        )

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """List or read. Cancelling withdraws it at once."""
        servers, uri = _wanted(self._servers, arguments), arguments.get("uri")
        if arguments.get("action") == "list":
            return await _list(servers, ListResources(), context)
        if not uri or len(servers) != 1:
            raise ToolError("read needs server and uri: list tells which there are.")
        return await servers[0].request(ReadResource(uri), context)


class PromptTool:
    """Lists and fills in the prompts that these servers have."""

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self._servers = {server.name: server for server in servers}
        more = {
            "name": {"type": "string", "description": "The prompt, for get."},
            "arguments": {
                "type": "object",
                "description": "What to fill in, for get.",
                "additionalProperties": {"type": "string"},
            },
        }
        self.spec = ToolSpec(
            PROMPT,
            "Prompts (ready-made instructions) of MCP servers: list them, or get one filled in.",
            _parameters(("list", "get"), self._servers, more),
        )

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """List or get. Cancelling withdraws it at once."""
        servers, name = _wanted(self._servers, arguments), arguments.get("name")
        if arguments.get("action") == "list":
            return await _list(servers, ListPrompts(), context)
        if not name or len(servers) != 1:
            raise ToolError("get needs server and name: list tells which there are.")
        given: Mapping[str, object] = arguments.get("arguments") or {}
        values = {key: str(value) for key, value in given.items()}
        return await servers[0].request(GetPrompt(name, values), context)


def _parameters(actions: tuple[str, ...], servers: Mapping[str, McpServer], more: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": list(actions)},
            "server": {"type": "string", "enum": list(servers), "description": "Without it, list asks all of them."},
            **more,
        },
        "required": ["action"],
        "additionalProperties": False,
    }


def _wanted(servers: Mapping[str, McpServer], arguments: Mapping[str, Any]) -> list[McpServer]:
    name = arguments.get("server")
    return [server for server in servers.values() if name in (None, "", server.name)]


async def _list(servers: Sequence[McpServer], wish: Wish, context: CallContext) -> ToolOutput:
    """Ask side by side, so that one that is slow or dead holds up none of the others."""
    outputs: dict[str, ToolOutput] = {}

    async def ask(server: McpServer) -> None:
        outputs[server.name] = await server.request(wish, context)

    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(ask, server)
    texts = [f"{server.name}:\n{outputs[server.name].text}" for server in servers]
    return ToolOutput("\n\n".join(texts), is_error=all(output.is_error for output in outputs.values()))
