"""The tools of MCP servers: one for each server tool, and two shared ones for resources and prompts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
from msgspec import structs

from hark.mcp.pending_request import CallTool, GetPrompt, ListPrompts, ListResources, McpRequest, ReadResource
from hark.mcp.server import McpServer
from hark.mcp.server_offer import RemoteTool
from hark.protocol.tool import CallContext, ToolError, ToolOutput, ToolSpec

GRACE_SECONDS = 0.1
RESOURCE = "mcp_resource"
PROMPT = "mcp_prompt"


class McpTool:
    """A tool that calls a server's tool, under a name that models accept."""

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
        """Call the tool. Cancelling also cancels the call at the server, and returns immediately."""
        return await self._server.request(CallTool(self._remote, dict(arguments)), context)


class MultiServerTool:
    """A tool that lists items from several servers, or gets one item from one of them."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        spec: ToolSpec,
        list_request: McpRequest,
        get_action: tuple[str, str],
        build_request: Callable[[Mapping[str, Any]], McpRequest],
    ) -> None:
        """`get_action` is the name of the action that gets one item, and of the parameter that identifies the item."""
        self._servers = {server.name: server for server in servers}
        self._list_request = list_request
        self._action, self._item_parameter = get_action
        self._build_request = build_request
        server_description = "Optional for list, which then includes all servers."
        server_parameter = {"type": "string", "enum": list(self._servers), "description": server_description}
        action = {"type": "string", "enum": ["list", self._action]}
        parameters = {
            "type": "object",
            "properties": {"action": action, "server": server_parameter, **spec.parameters},
            "required": ["action"],
            "additionalProperties": False,
        }
        self.spec = structs.replace(spec, parameters=parameters)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """List the items or get one. Cancelling cancels the request immediately."""
        server_name = arguments.get("server")
        servers = [server for server in self._servers.values() if server_name in (None, "", server.name)]
        if arguments.get("action") == "list":
            return await _list_from_all(servers, self._list_request, context)
        if not arguments.get(self._item_parameter) or len(servers) != 1:
            raise ToolError(f"{self._action} needs server and {self._item_parameter}. Use list to find them.")
        return await servers[0].request(self._build_request(arguments), context)


def create_resource_tool(servers: Sequence[McpServer]) -> MultiServerTool:
    """Return the tool that lists and reads the resources of these servers."""
    text = "Resources (files, records, pages) of MCP servers: list them, or read one by its URI."
    spec = ToolSpec(RESOURCE, text, {"uri": {"type": "string", "description": "For read."}})
    return MultiServerTool(
        servers, spec, ListResources(), ("read", "uri"), lambda arguments: ReadResource(arguments["uri"])
    )


def create_prompt_tool(servers: Sequence[McpServer]) -> MultiServerTool:
    """Return the tool that lists and fills in the prompts of these servers."""
    description = "Values for the prompt's arguments, for get."
    prompt_arguments = {"type": "object", "description": description, "additionalProperties": {"type": "string"}}
    name = {"type": "string", "description": "The prompt's name, for get."}
    text = "Prompts (ready-made instructions) of MCP servers: list them, or get one filled in."
    spec = ToolSpec(PROMPT, text, {"name": name, "arguments": prompt_arguments})

    def build_request(arguments: Mapping[str, Any]) -> GetPrompt:
        values: Mapping[str, object] = arguments.get("arguments") or {}
        return GetPrompt(arguments["name"], {key: str(value) for key, value in values.items()})

    return MultiServerTool(servers, spec, ListPrompts(), ("get", "name"), build_request)


async def _list_from_all(servers: Sequence[McpServer], request: McpRequest, context: CallContext) -> ToolOutput:
    """List the items from all servers in parallel, so that a slow or dead server doesn't delay the others."""
    outputs: dict[str, ToolOutput] = {}

    async def list_from(server: McpServer) -> None:
        outputs[server.name] = await server.request(request, context)

    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(list_from, server)
    texts = [f"{server.name}:\n{outputs[server.name].text}" for server in servers]
    return ToolOutput("\n\n".join(texts), is_error=all(output.is_error for output in outputs.values()))
