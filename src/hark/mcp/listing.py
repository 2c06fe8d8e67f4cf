"""A server's lists, read page by page to their end."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError

from hark.mcp.offer import RemoteTool, ServerOffer

PAGES = 200
DESCRIPTION_CHARACTERS = 8_000
# Model APIs take plain objects only; the server checks the rest by itself.
_NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum", "$schema")

Page = TypeVar("Page", bound=types.PaginatedResult)


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


async def listed_resources(session: ClientSession) -> list[types.Resource]:
    """Return all resources."""
    return [one for page in await _pages(session.list_resources) for one in page.resources]


async def listed_templates(session: ClientSession) -> list[types.ResourceTemplate]:
    """Return all patterns of resources; many servers don't know the question."""
    try:
        return [one for page in await _pages(session.list_resource_templates) for one in page.resource_templates]
    except MCPError:
        return []


async def listed_prompts(session: ClientSession) -> list[types.Prompt]:
    """Return all prompts."""
    return [one for page in await _pages(session.list_prompts) for one in page.prompts]


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
