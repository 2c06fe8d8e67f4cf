"""Session restrictions: a child session gets a subset of the tools, and separate limits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from hark.engine.services import EngineServices, Tools, TurnSettings
from hark.protocol.rules import Limits
from hark.protocol.tool import Tool, ToolSpec


class Restrictions(Struct, frozen=True):
    """A session's restrictions. `tools` lists the allowed tools (None for all); `limits` override the settings.

    A restricted session works for another session's turn, so it also runs while all sessions are paused.
    """

    tools: tuple[str, ...] | None = None
    limits: Limits | None = None

    def apply(self, services: EngineServices) -> EngineServices:
        """Return the services with these restrictions applied."""
        tools = services.tools if self.tools is None else SelectedTools(services.tools, self.tools)
        rules = msgspec.structs.replace(services.rules, limits=self.limits or services.rules.limits, is_paused=False)
        return services.with_settings(TurnSettings(rules, tools, services.system_prompt))


class SelectedTools:
    """A subset of the tools. The other tools are hidden."""

    def __init__(self, tools: Tools, names: Collection[str]) -> None:
        self._tools = tools
        self._names = names

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions of the selected tools."""
        return [spec for spec in self._tools.specs if spec.name in self._names]

    def get(self, name: str) -> Tool | None:
        """Return the tool with that name if it is selected, otherwise None."""
        return self._tools.get(name) if name in self._names else None

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Convert a call's arguments to the type that the tool expects."""
        return self._tools.decode(spec, arguments)

    async def wait_until_ready(self, session: str, notify: Callable[[str], None]) -> None:
        """Wait for tools that are being started, unless all selected tools are available."""
        if not {spec.name for spec in self._tools.specs}.issuperset(self._names):
            await self._tools.wait_until_ready(session, notify)
