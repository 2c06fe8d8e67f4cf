"""What a session may do less than others: a child gets a part of the tools, and limits of its own."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from hark.engine.services import EngineServices, Terms, Tools
from hark.protocol.rules import Limits
from hark.protocol.tool import Tool, ToolSpec


class Restrictions(Struct, frozen=True):
    """`tools`: the names of those on offer, None for all. `limits`: these instead of the settings'."""

    tools: tuple[str, ...] | None = None
    limits: Limits | None = None

    def apply(self, bench: EngineServices) -> EngineServices:
        """Return the workbench as a session with this charter has it."""
        tools = bench.tools if self.tools is None else Selection(bench.tools, self.tools)
        rules = bench.rules if self.limits is None else msgspec.structs.replace(bench.rules, limits=self.limits)
        return bench.under(Terms(rules, tools, bench.system_prompt))


class Selection:
    """Some of the tools; the others are not there."""

    def __init__(self, tools: Tools, names: Collection[str]) -> None:
        self._tools = tools
        self._names = names

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told."""
        return [spec for spec in self._tools.specs if spec.name in self._names]

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, if it is one of these."""
        return self._tools.get(name) if name in self._names else None

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Return a call's arguments as the tool takes them."""
        return self._tools.decode(spec, arguments)

    async def ready(self) -> None:
        """Return when it is known what is on offer."""
        await self._tools.ready()
