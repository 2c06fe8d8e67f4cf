"""Services that all sessions share. The app owns them, and a failing turn doesn't affect them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.listeners import Listeners
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Routes
from hark.engine.turn.spending import DailySpending
from hark.engine.turn.stream_count import ActiveStreamCounter
from hark.protocol.clock import Clock
from hark.protocol.commands import Reset
from hark.protocol.records import TurnEnded, TurnStarted
from hark.protocol.rules import Rules
from hark.protocol.snapshots import Snapshots
from hark.protocol.store import Store
from hark.protocol.tool import CommandAnalyzer, Tool, ToolSpec


class Tools(Protocol):
    """The tools that the model can call."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The descriptions sent to the model, always in the same order."""
        ...

    def get(self, name: str) -> Tool | None:
        """Return the tool with that name, or None."""
        ...

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        """Convert a call's arguments to the type that the tool expects.

        Raises:
            ToolError: The arguments are invalid; the text says why, for the model.
        """
        ...

    async def wait_until_ready(self, session: str, notify: Callable[[str], None]) -> None:
        """Wait for tools that are being started, for a limited time. Safe to cancel. Called before each step.

        `notify` receives messages about tools that are awaited, missing or available again.
        """
        ...


class Grants(Protocol):
    """Permanent permissions that the user has granted."""

    @property
    def all(self) -> Collection[str]:
        """All grants. Each grant is a tool's name, or `NAME:` followed by an exact command."""
        ...

    async def add(self, grant: str) -> None:
        """Store a grant durably. After a cancel, the write may still finish in the background.

        Raises:
            OSError: The grant could not be stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """The settings that apply to a turn: rules, tools and system prompt."""

    rules: Rules
    tools: Tools
    system_prompt: Callable[[], str]


class CurrentSettings:
    """The current settings. A reload replaces them for new turns; a running turn keeps those it started with."""

    def __init__(self, settings: TurnSettings) -> None:
        self.settings = settings


@dataclass(frozen=True, slots=True)
class EngineServices:
    """The engine's services, assembled by the app."""

    store: Store
    routes: Routes
    current: CurrentSettings
    clock: Clock
    quarantine: Quarantine
    spending: DailySpending
    lease_renewal: LeaseRenewal
    workspace: Path
    jitter: Callable[[], float]
    analyzer: CommandAnalyzer
    grants: Grants
    snapshots: Snapshots
    turn_started: Listeners[TurnStarted] = field(default_factory=Listeners[TurnStarted])  # notified when decided
    turn_ended: Listeners[TurnEnded] = field(default_factory=Listeners[TurnEnded])  # notified when durable
    checks: Listeners[None] = field(default_factory=Listeners[None])  # notified when all sessions are checked
    resets: Listeners[tuple[str, Reset]] = field(default_factory=Listeners[tuple[str, Reset]])  # of each session
    stopped: Listeners[str] = field(default_factory=Listeners[str])  # notified of each session that a user stops
    running_work: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])  # by session, in this process
    stream_counter: ActiveStreamCounter = field(default_factory=ActiveStreamCounter)

    @property
    def rules(self) -> Rules:
        """The current rules."""
        return self.current.settings.rules

    @property
    def tools(self) -> Tools:
        """The current tools."""
        return self.current.settings.tools

    @property
    def system_prompt(self) -> Callable[[], str]:
        """The function that returns the current system prompt."""
        return self.current.settings.system_prompt

    def with_settings(self, settings: TurnSettings) -> "EngineServices":
        """Return the same services with fixed settings, which a reload no longer changes."""
        return replace(self, current=CurrentSettings(settings))
