"""What every session works with: it belongs to the app, and nothing that happens to a turn touches it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.listeners import Listeners
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Routes
from hark.engine.turn.spending import Spending
from hark.engine.turn.stream_count import Streams
from hark.protocol.clock import Clock
from hark.protocol.records import TurnEnded, TurnStarted
from hark.protocol.rules import Rules
from hark.protocol.snapshots import Snapshots
from hark.protocol.store import Store
from hark.protocol.tool import CommandAnalyzer, Tool, ToolSpec


class Tools(Protocol):
    """The abilities on offer."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model is told, always in the same order."""
        ...

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name."""
        ...

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Return a call's arguments as the tool takes them.

        Raises:
            ToolError: They don't fit; the text tells the model why.
        """
        ...

    async def ready(self) -> None:
        """Return when it is known what is on offer, or after a short while: nothing may hold a turn."""
        ...


class Grants(Protocol):
    """What a person has allowed for good."""

    @property
    def known(self) -> Collection[str]:
        """The grants: a tool's name, or `NAME:` and an exact command."""
        ...

    async def remember(self, grant: str) -> None:
        """Store one more durably. Cancelling may leave it to finish on its own.

        Raises:
            OSError: It could not be kept.
        """
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What a turn works under, and the settings decide."""

    rules: Rules
    tools: Tools
    system_prompt: Callable[[], str]


class Current:
    """The terms in force. A reload changes them for what begins from then on; a turn takes them once, at its start."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms


@dataclass(frozen=True, slots=True)
class EngineServices:
    """The parts, put together by the app."""

    store: Store
    routes: Routes
    current: Current
    clock: Clock
    quarantine: Quarantine
    spending: Spending
    tenure: LeaseRenewal
    workspace: Path
    jitter: Callable[[], float]
    analyzer: CommandAnalyzer
    grants: Grants
    snapshots: Snapshots
    starts: Listeners[TurnStarted] = field(default_factory=Listeners[TurnStarted])  # told when they are decided
    ends: Listeners[TurnEnded] = field(default_factory=Listeners[TurnEnded])  # told when they are durable
    streams: Streams = field(default_factory=Streams)

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        return self.current.terms.rules

    @property
    def tools(self) -> Tools:
        """The abilities on offer."""
        return self.current.terms.tools

    @property
    def system_prompt(self) -> Callable[[], str]:
        """What returns the system prompt."""
        return self.current.terms.system_prompt

    def under(self, terms: Terms) -> "EngineServices":
        """Return the same parts under terms that nothing changes any more."""
        return replace(self, current=Current(terms))
