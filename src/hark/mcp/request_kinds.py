"""What can be asked of a server."""

from typing import Any

from msgspec import Struct


class CallTool(Struct, frozen=True):
    """Use one of its tools."""

    name: str
    arguments: dict[str, Any]


class ListResources(Struct, frozen=True):
    """Tell which resources there are, and which patterns of them."""


class ReadResource(Struct, frozen=True):
    """Hand over a resource."""

    uri: str


class ListPrompts(Struct, frozen=True):
    """Tell which prompts there are."""


class GetPrompt(Struct, frozen=True):
    """Fill in a prompt."""

    name: str
    arguments: dict[str, str]


Wish = CallTool | ListResources | ReadResource | ListPrompts | GetPrompt
