"""The tools that an agent has, by name."""

from collections.abc import Iterable, Mapping
from typing import Any

from hark.protocol.tool import Tool, ToolSpec
from hark.tools.arguments import check


class Toolbox:
    """A fixed set of tools, in the order in which they were given: the model sees the same list at every step.

    Raises:
        ValueError: Two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            name = tool.spec.name
            if name in self._tools:
                raise ValueError(f"Two tools are named {name}: a model could not tell them apart. Rename one of them.")
            self._tools[name] = tool

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of them."""
        return tuple(tool.spec for tool in self._tools.values())

    def check(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
        """Return what is wrong with a call's arguments, in a sentence for the model; None when they are right."""
        return check(spec, arguments)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, if there is one."""
        return self._tools.get(name)
