"""Sends requests with a session of the SDK, and returns the answers as a tool's output: bounded text, and files."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import anyio
import mcp_types as types
import msgspec
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from hark.mcp.offers import RemoteTool, ServerOffer
from hark.mcp.requests import CallTool, Errand, GetPrompt, ListPrompts, ListResources, ReadResource
from hark.protocol.messages import Attachment, Effect
from hark.protocol.tool import ToolOutput

TEXT_CHARACTERS = 100_000
ATTACHMENT_CHARACTERS = 14_000_000  # of base64: some 10 MB
ATTACHMENTS = 20
Content = types.ContentBlock | types.TextResourceContents | types.BlobResourceContents
PAGES = 200
DESCRIPTION_CHARACTERS = 8_000
# Model APIs take plain objects only; the server checks the rest by itself.
_NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum", "$schema")
Page = TypeVar("Page", bound=types.PaginatedResult)
ROUNDS = 20
ROUND_SECONDS = 0.1
_CALLED: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


def tool_output(result: types.CallToolResult) -> ToolOutput:
    """Return what a tool of the server said."""
    output = _output(result.content, is_error=result.is_error)
    if result.structured_content is None or any(isinstance(block, types.TextContent) for block in result.content):
        # Servers that send structure send its text as well, for those who don't read the structure.
        return output
    structure = msgspec.json.encode(result.structured_content).decode()
    return msgspec.structs.replace(output, text=bounded("\n".join(filter(None, (output.text, structure)))))


def prompt_output(result: types.GetPromptResult) -> ToolOutput:
    """Return a prompt's messages, each with who says it."""
    blocks: list[Content] = []
    for message in result.messages:
        blocks += [types.TextContent(text=f"{message.role}:"), message.content]
    return _output(blocks)


def resources_output(
    resources: Iterable[types.Resource], templates: Iterable[types.ResourceTemplate], server: str
) -> ToolOutput:
    """Return the names of resources, one a line."""
    lines = [_line(resource.uri, resource.title or resource.name, resource.description) for resource in resources]
    lines += [_line(one.uri_template, one.title or one.name, one.description) for one in templates]
    return ToolOutput(bounded("\n".join(lines) or f"The server {server} has no resources."))


def prompts_output(prompts: Sequence[types.Prompt], server: str) -> ToolOutput:
    """Return the names of prompts with their arguments, one a line."""
    lines = [
        _line(f"{prompt.name}({', '.join(_argument(one) for one in prompt.arguments or ())})", "", prompt.description)
        for prompt in prompts
    ]
    return ToolOutput(bounded("\n".join(lines) or f"The server {server} has no prompts."))


def bounded(text: str) -> str:
    """Return the text, without its middle when it is too long."""
    cut = len(text) - TEXT_CHARACTERS
    if cut <= 0:
        return text
    half = TEXT_CHARACTERS // 2
    return f"{text[:half]}\n[... {cut:,} characters cut here ...]\n{text[-half:]}"


def _output(blocks: Iterable[Content], *, is_error: bool = False) -> ToolOutput:
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        text, attachment = _read(block)
        if attachment and (len(attachments) >= ATTACHMENTS or len(attachment.data) > ATTACHMENT_CHARACTERS):
            text, attachment = f"[left out, as it is too much: {attachment.media_type} {attachment.name}]", None
        if text:
            texts.append(text)
        if attachment:
            attachments.append(attachment)
    return ToolOutput(bounded("\n".join(texts)), is_error, Effect.COMPLETED, tuple(attachments))


def _read(block: Content) -> tuple[str, Attachment | None]:
    match block:
        case types.TextContent() | types.TextResourceContents():
            return block.text, None
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, attached]", Attachment(block.mime_type, data=block.data)
        case types.ResourceLink():
            return _line(block.uri, block.title or block.name, block.description), None
        case types.EmbeddedResource():
            text, attachment = _read(block.resource)
            return (text if attachment else f"[{block.resource.uri}]\n{text}"), attachment
        case types.BlobResourceContents():
            media_type = block.mime_type or "application/octet-stream"
            return f"[{block.uri}, attached]", Attachment(media_type, name=block.uri, data=block.blob)


def _line(name: str, title: str, description: str | None) -> str:
    return " - ".join(part for part in (name, title, (description or "").strip()) if part)


def _argument(argument: types.PromptArgument) -> str:
    return argument.name if argument.required else f"{argument.name}?"


async def listed_offer(session: ClientSession) -> ServerOffer:
    """Return all that the server offers.

    Raises:
        MCPError, pydantic.ValidationError: It can't tell its tools. That it can't tell the rest is no harm.
    """
    capabilities = session.server_capabilities or types.ServerCapabilities()
    tools = await _listed_tools(session) if capabilities.tools else []
    has_resources = bool(capabilities.resources) and await _has_resources(session)
    has_prompts = bool(capabilities.prompts) and await _has_prompts(session)
    return ServerOffer(tuple(_remote(tool) for tool in tools), has_resources, has_prompts)


async def listed_templates(session: ClientSession) -> list[types.ResourceTemplate]:
    """Return all patterns of resources; many servers don't know the question."""
    try:
        return [one for page in await _pages(session.list_resource_templates) for one in page.resource_templates]
    except MCPError:
        return []


async def _listed_tools(session: ClientSession) -> list[types.Tool]:
    tools = [one for page in await _pages(session.list_tools) for one in page.tools]
    return list({tool.name: tool for tool in tools}.values())


async def _has_resources(session: ClientSession) -> bool:
    try:
        return bool((await session.list_resources()).resources or await listed_templates(session))
    except MCPError:
        return False


async def _has_prompts(session: ClientSession) -> bool:
    try:
        return bool((await session.list_prompts()).prompts)
    except MCPError:
        return False


async def _pages(ask: Callable[..., Awaitable[Page]]) -> list[Page]:
    pages: list[Page] = []
    seen: set[str] = set()
    cursor: str | None = None
    while len(pages) < PAGES:
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        pages.append(page)
        cursor = page.next_cursor
        if not cursor or cursor in seen:  # a server that turns in circles is read once round
            break
        seen.add(cursor)
    return pages


def _remote(tool: types.Tool) -> RemoteTool:
    hints = tool.annotations or types.ToolAnnotations()
    title = tool.title or hints.title or ""
    description = (tool.description or title or tool.name)[:DESCRIPTION_CHARACTERS]
    return RemoteTool(tool.name, description, _parameters(tool.input_schema), not hints.read_only_hint)


def _parameters(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in _NOT_AT_THE_TOP}
    given: dict[str, Any] = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    # A schema may be a mere `true`, which few model APIs know.
    properties: dict[str, Any] = {name: one if isinstance(one, dict) else {} for name, one in given.items()}
    return {**kept, "type": "object", "properties": properties}


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
            resources = [one for page in await _pages(session.list_resources) for one in page.resources]
            return resources_output(resources, await listed_templates(session), server)
        case ReadResource(uri):
            return _output((await session.read_resource(uri)).contents)
        case ListPrompts():
            prompts = [one for page in await _pages(session.list_prompts) for one in page.prompts]
            return prompts_output(prompts, server)
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
