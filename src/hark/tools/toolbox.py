"""The tools that an agent has, by name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import anyio

from hark.protocol.tool import Tool, ToolSpec
from hark.tools.arguments import decode

READY_SECONDS = 10.0


class Source(Protocol):
    """Tools that come and go, such as those of other programs."""

    def tools(self) -> Sequence[Tool]:
        """Return those on offer now, in an order that stays the same."""
        ...

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, also one that is not on offer yet."""
        ...

    async def settled(self, seconds: float) -> None:
        """Return when it is known what is on offer, or after so many seconds."""
        ...


class Toolbox:
    """A fixed set of tools, in the order in which they were given, and behind them those of the sources.

    Raises:
        ValueError: Two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool] = (), sources: Sequence[Source] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._sources = sources
        self._ready_at = 0.0
        for tool in tools:
            name = tool.spec.name
            if name in self._tools:
                raise ValueError(f"Two tools are named {name}: a model could not tell them apart. Rename one of them.")
            self._tools[name] = tool
        self._specs = tuple(tool.spec for tool in self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of them."""
        if not self._sources:
            return self._specs
        more = (tool.spec for source in self._sources for tool in source.tools())
        return (*self._specs, *(spec for spec in more if spec.name not in self._tools))

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Return a call's arguments as the tool takes them.

        Raises:
            ToolError: They don't fit.
        """
        return decode(spec, arguments)

    async def ready(self) -> None:
        """Return when it is known what is on offer, at the latest a short while after the first one asked."""
        if not self._sources:
            return
        self._ready_at = self._ready_at or anyio.current_time() + READY_SECONDS
        for source in self._sources:
            await source.settled(max(0.0, self._ready_at - anyio.current_time()))

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, if there is one."""
        found = self._tools.get(name)
        return found or next((tool for source in self._sources if (tool := source.get(name))), None)
