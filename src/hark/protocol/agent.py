"""The port between a surface and the agent: its sessions, its schedules and its state."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from hark.protocol.messages import AssistantMessage, Note, UserMessage
from hark.protocol.schedules import Schedules
from hark.protocol.session import Session
from hark.protocol.store import SearchHit, SessionListEntry

PastMessage = UserMessage | AssistantMessage | Note


class WorkspaceError(Exception):
    """A session can't be opened in the requested workspace. The text says why and what to do."""


class UnknownSession(WorkspaceError):
    """No session has the requested name."""


class Workspace(Struct, frozen=True):
    """A session's workspace: an absolute folder, and MCP servers by name, configured like `[mcp.servers.NAME]`."""

    folder: str
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


class CommandInfo(Struct, frozen=True):
    """A slash command, with the name, arguments and help text that help and completion show."""

    name: str
    takes: str
    help: str


class ChildInfo(Struct, frozen=True):
    """A child session in the session tree. `depth` is 1 for a direct child."""

    name: str
    depth: int
    title: str
    is_running: bool


class GatewayState(StrEnum):
    """The gateway's state.

    Draining: it waits for running turns to end before it stops. Paused: it accepts messages, but starts no turn.
    """

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    PAUSED = "paused"


class RouteStatus(Struct, frozen=True):
    """A route and its health. `rests_seconds` is the remaining cool-down, 0 when the route can be used."""

    name: str
    model: str
    is_well: bool
    failures: int
    rests_seconds: float


class McpServerStatus(Struct, frozen=True):
    """An MCP server's state, number of tools and restarts, last error, and time until its next automatic attempt."""

    name: str
    state: str
    tools: int
    restarts: int
    last_error: str
    retry_seconds: float | None = None


class LagStats(Struct, frozen=True):
    """The event loop's lag in the last minute, in milliseconds: median, 99th percentile and maximum."""

    p50: float
    p99: float
    most: float


class RunningTurns(Struct, frozen=True):
    """The number of open sessions in this process, and the running turn of each session that has one."""

    sessions: int
    turns: dict[str, str]


class Agent(Protocol):
    """The part of the agent that surfaces may use."""

    @property
    def state(self) -> GatewayState:
        """Whether the agent is starting, ready for new turns, or draining."""
        ...

    @property
    def commands(self) -> Sequence[CommandInfo]:
        """The slash commands."""
        ...

    @property
    def schedules(self) -> Schedules:
        """The schedules of this home."""
        ...

    def session(self, name: str, surface: str) -> Session:
        """Return the session of that name for a surface. The session is created by its first message.

        Raises:
            ValueError: The name is not valid for a session.
        """
        ...

    def new_id(self) -> str:
        """Return a new unique id."""
        ...

    def first_route(self, session: str) -> str:
        """Return the route that a session tries first. A chosen route is known only if the session is loaded here."""
        ...

    async def sessions(self, query: str = "", limit: int = 200) -> list[SessionListEntry]:
        """Return sessions, most recently changed first. `query` selects those whose name or title contains it."""
        ...

    async def children(self, session: str) -> list[ChildInfo]:
        """Return the session's children and their descendants, each after its parent."""
        ...

    async def search(self, query: str, limit: int = 50) -> list[SearchHit]:
        """Return the messages that contain all words of the query, newest first."""
        ...

    async def import_history(self, session: str, messages: Sequence[PastMessage]) -> bool:
        """Import earlier messages as the history of an empty session. Return False if it already has a history.

        Raises:
            StoreError: The messages could not be stored.
        """
        ...

    async def timeline(self, turn: str) -> dict[str, Any] | None:
        """Return a turn's timeline: how its time was spent. Return None if no such turn exists."""
        ...

    def routes(self) -> list[RouteStatus]:
        """Return the routes and their health, in the configured order."""
        ...

    def servers(self) -> list[McpServerStatus]:
        """Return the state of each MCP server."""
        ...

    def running_turns(self) -> RunningTurns:
        """Return the open sessions and running turns of this process."""
        ...

    def lag_stats(self) -> LagStats:
        """Return the event loop's lag in the last minute."""
        ...

    async def cost_today(self) -> float:
        """Return the cost in US dollars of all turns that ended since midnight."""
        ...
