"""An agent's tools, by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from hark.protocol.tool import Tool, ToolSpec
from hark.tools.arguments import decode_arguments


class ToolSource(Protocol):
    """A source of tools, such as an external program. Its set of tools can change at run time."""

    def tools(self) -> Sequence[Tool]:
        """Return the tools that are available now, in a stable order."""
        ...

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, even if it is not available yet, or None."""
        ...

    async def wait_until_ready(self, session: str, notify: Callable[[str], None]) -> None:
        """Wait for tools that are being started, for a limited time. `notify` receives messages for the session."""
        ...


class Toolbox:
    """A fixed set of tools in the given order, followed by the tools of the sources.

    Raises:
        ValueError: Two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool] = (), sources: Sequence[ToolSource] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._sources = sources
        for tool in tools:
            name = tool.spec.name
            if name in self._tools:
                raise ValueError(f"Two tools are named {name}, but tool names must be unique. Rename one of them.")
            self._tools[name] = tool
        self._specs = tuple(tool.spec for tool in self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs of all tools, as the model sees them."""
        if not self._sources:
            return self._specs
        more = (tool.spec for source in self._sources for tool in source.tools())
        return (*self._specs, *(spec for spec in more if spec.name not in self._tools))

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Decode a call's arguments into the type that the tool expects.

        Raises:
            ToolError: The arguments don't match that type.
        """
        return decode_arguments(spec, arguments)

    async def wait_until_ready(self, session: str, notify: Callable[[str], None]) -> None:
        """Wait for tools that are being started, for a limited time. `notify` receives messages for the session."""
        for source in self._sources:
            await source.wait_until_ready(session, notify)

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, or None."""
        found = self._tools.get(name)
        return found or next((tool for source in self._sources if (tool := source.get(name))), None)
