"""Does a wish with a session of the SDK."""

import anyio
import mcp_types as types
import msgspec
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from hark.mcp.listing import listed_prompts, listed_resources, listed_templates
from hark.mcp.request import Errand
from hark.mcp.request_kinds import CallTool, GetPrompt, ListPrompts, ListResources, ReadResource
from hark.mcp.results import prompt_output, prompts_output, resource_output, resources_output, tool_output
from hark.protocol.tool import ToolOutput

ROUNDS = 20
ROUND_SECONDS = 0.1

_CALLED: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


async def perform(session: ClientSession, errand: Errand, server: str) -> ToolOutput:
    """Return what came of the wish. Cancelling tells the server.

    Raises:
        MCPError: The server refused.
        pydantic.ValidationError: What it sent is not valid.
    """
    match errand.wish:
        case CallTool():
            return await _call(session, errand, errand.wish)
        case ListResources():
            return resources_output(await listed_resources(session), await listed_templates(session), server)
        case ReadResource(uri):
            return resource_output(await session.read_resource(uri))
        case ListPrompts():
            return prompts_output(await listed_prompts(session), server)
        case GetPrompt(name, arguments):
            return prompt_output(await session.get_prompt(name, arguments))


async def _call(session: ClientSession, errand: Errand, wish: CallTool) -> ToolOutput:
    async def show(progress: float, total: float | None, message: str | None) -> None:
        errand.progress(progress, total, message)

    _check_sendable(wish)
    responses: types.InputResponses | None = None
    state: str | None = None
    for _ in range(ROUNDS):
        # Not `session.call_tool`: that throws a result away when its structure isn't what the server had promised.
        params = types.CallToolRequestParams(
            name=wish.name, arguments=wish.arguments, input_responses=responses, request_state=state
        )
        request = types.CallToolRequest(params=params)
        result = await session.send_request(request, _CALLED, progress_callback=show)
        if isinstance(result, types.CallToolResult):
            return tool_output(result)
        state = result.request_state
        responses = await _responses(session, result)
    raise MCPError(types.INTERNAL_ERROR, f"it asked for more input {ROUNDS} times")


def _check_sendable(wish: CallTool) -> None:
    """What can't be written would end the connection for everybody, if it was found out later."""
    try:
        msgspec.json.encode(wish.arguments)
    except (TypeError, ValueError) as error:
        raise MCPError(types.INVALID_PARAMS, f"its arguments can't be sent as JSON: {error}") from error


async def _responses(session: ClientSession, result: types.InputRequiredResult) -> types.InputResponses | None:
    """Return what a server of the newer kind wants to know before it goes on."""
    if not result.input_requests:
        await anyio.sleep(ROUND_SECONDS)
        return None
    responses: types.InputResponses = {}
    for key, request in result.input_requests.items():
        context = ClientRequestContext(session=session, request_id=key)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, types.ErrorData):
            raise MCPError.from_error_data(response)
        responses[key] = response
    return responses
