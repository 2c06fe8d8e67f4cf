"""What every session works with: it belongs to the app, and nothing that happens to a turn touches it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hark.engine.quarantine import Quarantine
from hark.engine.routes import Routes
from hark.engine.spending import Spending
from hark.engine.tenure import Tenure
from hark.protocol.clock import Clock
from hark.protocol.rules import Rules
from hark.protocol.store import Store
from hark.protocol.tool import Tool, ToolSpec


class Tools(Protocol):
    """The abilities on offer."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told, always in the same order."""
        ...

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name."""
        ...

    def check(self, spec: ToolSpec, arguments: dict[str, object]) -> str | None:
        """Return what is wrong with the arguments, in a sentence for the model; None when they are right."""
        ...


@dataclass(frozen=True, slots=True)
class Workbench:
    """The parts, put together by the app."""

    store: Store
    routes: Routes
    tools: Tools
    rules: Rules
    clock: Clock
    quarantine: Quarantine
    spending: Spending
    tenure: Tenure
    workspace: Path
    system_prompt: Callable[[], str]
    jitter: Callable[[], float]
