"""The tools of MCP servers: one for each tool of theirs, and two that all share, for resources and for prompts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
from msgspec import structs

from hark.mcp.offers import RemoteTool
from hark.mcp.requests import CallTool, GetPrompt, ListPrompts, ListResources, ReadResource, Wish
from hark.mcp.server import McpServer
from hark.protocol.tool import CallContext, ToolError, ToolOutput, ToolSpec

GRACE_SECONDS = 0.1
RESOURCE = "mcp_resource"
PROMPT = "mcp_prompt"


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


class SharedTool:
    """Lists what several servers have, or gets one thing from one of them."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        spec: ToolSpec,
        listing: Wish,
        get: tuple[str, str],
        wish: Callable[[Mapping[str, Any]], Wish],
    ) -> None:
        """`get` is the action that gets one thing, and the parameter that names it; `wish` is what it asks for."""
        self._servers = {server.name: server for server in servers}
        self._listing = listing
        self._action, self._name = get
        self._wish = wish
        which = {"type": "string", "enum": list(self._servers), "description": "Without it, list asks all of them."}
        action = {"type": "string", "enum": ["list", self._action]}
        parameters = {
            "type": "object",
            "properties": {"action": action, "server": which, **spec.parameters},
            "required": ["action"],
            "additionalProperties": False,
        }
        self.spec = structs.replace(spec, parameters=parameters)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """List or get. Cancelling withdraws it at once."""
        wanted = arguments.get("server")
        servers = [server for server in self._servers.values() if wanted in (None, "", server.name)]
        if arguments.get("action") == "list":
            return await _list(servers, self._listing, context)
        if not arguments.get(self._name) or len(servers) != 1:
            raise ToolError(f"{self._action} needs server and {self._name}: list tells which there are.")
        return await servers[0].request(self._wish(arguments), context)


def resource_tool(servers: Sequence[McpServer]) -> SharedTool:
    """Return the tool that lists and reads the resources of these servers."""
    text = "Resources (files, records, pages) of MCP servers: list them, or read one by its URI."
    spec = ToolSpec(RESOURCE, text, {"uri": {"type": "string", "description": "For read."}})
    return SharedTool(servers, spec, ListResources(), ("read", "uri"), lambda given: ReadResource(given["uri"]))


def prompt_tool(servers: Sequence[McpServer]) -> SharedTool:
    """Return the tool that lists and fills in the prompts of these servers."""
    filled = {"type": "object", "description": "What to fill in, for get.", "additionalProperties": {"type": "string"}}
    name = {"type": "string", "description": "The prompt, for get."}
    text = "Prompts (ready-made instructions) of MCP servers: list them, or get one filled in."
    spec = ToolSpec(PROMPT, text, {"name": name, "arguments": filled})

    def wish(given: Mapping[str, Any]) -> GetPrompt:
        values: Mapping[str, object] = given.get("arguments") or {}
        return GetPrompt(given["name"], {key: str(value) for key, value in values.items()})

    return SharedTool(servers, spec, ListPrompts(), ("get", "name"), wish)


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
