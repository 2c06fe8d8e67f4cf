"""Sends requests through an SDK session, and converts the responses to tool output: bounded text and attachments."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import anyio
import mcp_types as types
import msgspec
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from hark.mcp.pending_request import CallTool, GetPrompt, ListPrompts, ListResources, PendingRequest, ReadResource
from hark.mcp.server_offer import RemoteTool, ServerOffer
from hark.protocol.messages import Attachment, Effect
from hark.protocol.tool import ToolOutput
from hark.text.cleanup import truncate_middle

MAX_TEXT_CHARACTERS = 100_000
MAX_ATTACHMENT_CHARACTERS = 14_000_000  # base64, about 10 MB
MAX_ATTACHMENTS = 20
Content = types.ContentBlock | types.TextResourceContents | types.BlobResourceContents
MAX_PAGES = 200
MAX_DESCRIPTION_CHARACTERS = 8_000
# Model APIs accept only plain objects at the top level. The server checks the removed rules itself.
_UNSUPPORTED_TOP_LEVEL_KEYS = ("oneOf", "anyOf", "allOf", "not", "enum", "$schema")
Page = TypeVar("Page", bound=types.PaginatedResult)
MAX_INPUT_ROUNDS = 20
INPUT_RETRY_SECONDS = 0.1
_CALL_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


def format_tool_result(result: types.CallToolResult) -> ToolOutput:
    """Convert the result of an MCP tool call to Hark's tool output."""
    output = _format_blocks(result.content, is_error=result.is_error)
    if result.structured_content is None or any(isinstance(block, types.TextContent) for block in result.content):
        # Servers that send structured content normally send it as text too.
        return output
    structure = msgspec.json.encode(result.structured_content).decode()
    return msgspec.structs.replace(output, text=_truncate("\n".join(filter(None, (output.text, structure)))))


def format_prompt(result: types.GetPromptResult) -> ToolOutput:
    """Return a prompt's messages, each preceded by its role."""
    blocks: list[Content] = []
    for message in result.messages:
        blocks += [types.TextContent(text=f"{message.role}:"), message.content]
    return _format_blocks(blocks)


def format_resources(
    resources: Iterable[types.Resource], templates: Iterable[types.ResourceTemplate], server: str
) -> ToolOutput:
    """Return a list of resources and resource templates, one per line."""
    lines = [_format_entry(item.uri, item.title or item.name, item.description) for item in resources]
    lines += [_format_entry(item.uri_template, item.title or item.name, item.description) for item in templates]
    return ToolOutput(_truncate("\n".join(lines) or f"The server {server} has no resources."))


def format_prompts(prompts: Sequence[types.Prompt], server: str) -> ToolOutput:
    """Return a list of prompts with their arguments, one per line."""
    lines = [
        _format_entry(
            f"{prompt.name}({', '.join(map(_format_argument, prompt.arguments or ()))})", "", prompt.description
        )
        for prompt in prompts
    ]
    return ToolOutput(_truncate("\n".join(lines) or f"The server {server} has no prompts."))


def _format_blocks(blocks: Iterable[Content], *, is_error: bool = False) -> ToolOutput:
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        text, attachment = _convert_block(block)
        if attachment and (len(attachments) >= MAX_ATTACHMENTS or len(attachment.data) > MAX_ATTACHMENT_CHARACTERS):
            text, attachment = f"[attachment omitted, limit exceeded: {attachment.media_type} {attachment.name}]", None
        if text:
            texts.append(text)
        if attachment:
            attachments.append(attachment)
    return ToolOutput(_truncate("\n".join(texts)), is_error, Effect.COMPLETED, tuple(attachments))


def _convert_block(block: Content) -> tuple[str, Attachment | None]:
    match block:
        case types.TextContent() | types.TextResourceContents():
            return block.text, None
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, attached]", Attachment(block.mime_type, data=block.data)
        case types.ResourceLink():
            return _format_entry(block.uri, block.title or block.name, block.description), None
        case types.EmbeddedResource():
            text, attachment = _convert_block(block.resource)
            return (text if attachment else f"[{block.resource.uri}]\n{text}"), attachment
        case types.BlobResourceContents():
            media_type = block.mime_type or "application/octet-stream"
            return f"[{block.uri}, attached]", Attachment(media_type, name=block.uri, data=block.blob)


def _format_entry(name: str, title: str, description: str | None) -> str:
    return " - ".join(part for part in (name, title, (description or "").strip()) if part)


def _format_argument(argument: types.PromptArgument) -> str:
    return argument.name if argument.required else f"{argument.name}?"


async def fetch_offer(session: ClientSession) -> ServerOffer:
    """Return the server's offer: its tools, and whether it has resources and prompts.

    Raises:
        MCPError, pydantic.ValidationError: The tools can't be listed. Errors about resources and prompts are ignored.
    """
    capabilities = session.server_capabilities or types.ServerCapabilities()
    tools = await _fetch_tools(session) if capabilities.tools else []
    has_resources = bool(capabilities.resources) and await _has_resources(session)
    has_prompts = bool(capabilities.prompts) and await _has_prompts(session)
    return ServerOffer(tuple(_to_remote_tool(tool) for tool in tools), has_resources, has_prompts)


async def fetch_resource_templates(session: ClientSession) -> list[types.ResourceTemplate]:
    """Return all resource templates, or an empty list if the server doesn't support them, as many don't."""
    try:
        pages = await _fetch_pages(session.list_resource_templates)
        return [template for page in pages for template in page.resource_templates]
    except MCPError:
        return []


async def _fetch_tools(session: ClientSession) -> list[types.Tool]:
    tools = [tool for page in await _fetch_pages(session.list_tools) for tool in page.tools]
    return list({tool.name: tool for tool in tools}.values())


async def _has_resources(session: ClientSession) -> bool:
    try:
        return bool((await session.list_resources()).resources or await fetch_resource_templates(session))
    except MCPError:
        return False


async def _has_prompts(session: ClientSession) -> bool:
    try:
        return bool((await session.list_prompts()).prompts)
    except MCPError:
        return False


async def _fetch_pages(fetch: Callable[..., Awaitable[Page]]) -> list[Page]:
    pages: list[Page] = []
    seen: set[str] = set()
    cursor: str | None = None
    while len(pages) < MAX_PAGES:
        page = await fetch(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        pages.append(page)
        cursor = page.next_cursor
        if not cursor or cursor in seen:  # stop if the server repeats a cursor
            break
        seen.add(cursor)
    return pages


def _to_remote_tool(tool: types.Tool) -> RemoteTool:
    hints = tool.annotations or types.ToolAnnotations()
    title = tool.title or hints.title or ""
    description = (tool.description or title or tool.name)[:MAX_DESCRIPTION_CHARACTERS]
    return RemoteTool(tool.name, description, _clean_parameters(tool.input_schema), not hints.read_only_hint)


def _clean_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    supported = {key: value for key, value in schema.items() if key not in _UNSUPPORTED_TOP_LEVEL_KEYS}
    declared: dict[str, Any] = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    # A property's schema may be just `true`, which few model APIs accept.
    properties: dict[str, Any] = {name: value if isinstance(value, dict) else {} for name, value in declared.items()}
    return {**supported, "type": "object", "properties": properties}


async def perform_request(session: ClientSession, pending: PendingRequest, server: str) -> ToolOutput:
    """Send a request and return its result. Cancelling also cancels the request at the server.

    Raises:
        MCPError: The server refused.
        pydantic.ValidationError: The server sent an invalid message.
    """
    match pending.request:
        case CallTool():
            return await _call_tool(session, pending, pending.request)
        case ListResources():
            resources = [resource for page in await _fetch_pages(session.list_resources) for resource in page.resources]
            return format_resources(resources, await fetch_resource_templates(session), server)
        case ReadResource(uri):
            return _format_blocks((await session.read_resource(uri)).contents)
        case ListPrompts():
            prompts = [prompt for page in await _fetch_pages(session.list_prompts) for prompt in page.prompts]
            return format_prompts(prompts, server)
        case GetPrompt(name, arguments):
            return format_prompt(await session.get_prompt(name, arguments))


async def _call_tool(session: ClientSession, pending: PendingRequest, call: CallTool) -> ToolOutput:
    async def show_progress(progress: float, total: float | None, message: str | None) -> None:
        pending.show_progress(progress, total, message)

    _check_serializable(call)
    responses: types.InputResponses | None = None
    state: str | None = None
    for _ in range(MAX_INPUT_ROUNDS):
        # Not `session.call_tool`, which discards a result whose structure differs from the declared schema.
        params = types.CallToolRequestParams(
            name=call.name, arguments=call.arguments, input_responses=responses, request_state=state
        )
        request = types.CallToolRequest(params=params)
        result = await session.send_request(request, _CALL_RESULT, progress_callback=show_progress)
        if isinstance(result, types.CallToolResult):
            return format_tool_result(result)
        state = result.request_state
        responses = await _answer_input_requests(session, result)
    raise MCPError(types.INTERNAL_ERROR, f"the server asked for more input {MAX_INPUT_ROUNDS} times")


def _check_serializable(call: CallTool) -> None:
    """Reject arguments that can't be encoded as JSON. Sending them would end the connection for all requests."""
    try:
        msgspec.json.encode(call.arguments)
    except (TypeError, ValueError) as error:
        raise MCPError(types.INVALID_PARAMS, f"the arguments can't be encoded as JSON: {error}") from error


async def _answer_input_requests(
    session: ClientSession, result: types.InputRequiredResult
) -> types.InputResponses | None:
    """Answer the input requests that a server with the newer protocol sends before it continues."""
    if not result.input_requests:
        await anyio.sleep(INPUT_RETRY_SECONDS)
        return None
    responses: types.InputResponses = {}
    for key, request in result.input_requests.items():
        context = ClientRequestContext(session=session, request_id=key)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, types.ErrorData):
            raise MCPError.from_error_data(response)
        responses[key] = response
    return responses


def _truncate(text: str) -> str:
    return truncate_middle(text, MAX_TEXT_CHARACTERS)
