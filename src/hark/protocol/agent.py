"""The port between a surface and the agent: its sessions, and its state."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from hark.protocol.messages import AssistantMessage, Note, UserMessage
from hark.protocol.schedules import Schedules
from hark.protocol.session import Session
from hark.protocol.store import Hit, SessionLine

PastMessage = UserMessage | AssistantMessage | Note


class WorkspaceError(Exception):
    """A session can't be had there; the text says why, and what to do."""


class UnknownSession(WorkspaceError):
    """There is no session of that name."""


class Workspace(Struct, frozen=True):
    """Where a session works: an absolute folder, and MCP servers by name, as `[mcp.servers.NAME]` has them."""

    folder: str
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


class CommandLine(Struct, frozen=True):
    """A slash command, as help and completion show it."""

    name: str
    takes: str
    help: str


class ChildLine(Struct, frozen=True):
    """A child, as the tree shows it: `depth` is 1 for the session's own."""

    name: str
    depth: int
    title: str
    is_running: bool


class GatewayState(StrEnum):
    """Whether the gateway starts, serves, or waits for running turns to end before it stops."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class RouteRow(Struct, frozen=True):
    """A route and its health. `rests_seconds` is how long it is left alone, 0 when it may serve."""

    name: str
    model: str
    is_well: bool
    failures: int
    rests_seconds: float


class ServerRow(Struct, frozen=True):
    """An MCP server: how it stands, and why not better."""

    name: str
    state: str
    tools: int
    restarts: int
    last_error: str


class Lag(Struct, frozen=True):
    """How late the event loop was in the last minute, in milliseconds."""

    p50: float
    p99: float
    most: float


class Busy(Struct, frozen=True):
    """What goes on in this process: open sessions, and the turns that run, by session."""

    sessions: int
    turns: dict[str, str]


class Agent(Protocol):
    """What surfaces may use of the agent."""

    @property
    def state(self) -> GatewayState:
        """Whether new turns are begun."""
        ...

    @property
    def commands(self) -> Sequence[CommandLine]:
        """The slash commands."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Its schedules."""
        ...

    def session(self, name: str, surface: str) -> Session:
        """Return a session, as people or programs of that surface use it; it is created when something is said in it.

        Raises:
            ValueError: A session can't have that name.
        """
        ...

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...

    def model(self, session: str) -> str:
        """Return the route that serves a session first, as far as it is loaded here."""
        ...

    async def sessions(self, words: str = "", limit: int = 200) -> list[SessionLine]:
        """Return the sessions, the last changed first; only those with these words in name or title."""
        ...

    async def children(self, session: str) -> list[ChildLine]:
        """Return the session's children and theirs, each behind its parent."""
        ...

    async def search(self, words: str, limit: int = 50) -> list[Hit]:
        """Return the messages in which all the words stand, the newest first."""
        ...

    async def import_history(self, session: str, past: Sequence[PastMessage]) -> bool:
        """Give a session that has none a past; False when it has one already.

        Raises:
            StoreError: It could not be kept.
        """
        ...

    async def timeline(self, turn: str) -> dict[str, Any] | None:
        """Return where a turn's time went; None when there is no such turn."""
        ...

    def routes(self) -> list[RouteRow]:
        """Return the routes, in their order."""
        ...

    def servers(self) -> list[ServerRow]:
        """Return the MCP servers."""
        ...

    def busy(self) -> Busy:
        """Return what goes on in this process."""
        ...

    def lag(self) -> Lag:
        """Return how late the event loop is."""
        ...

    async def cost_today(self) -> float:
        """Return the US dollars of all turns that ended since midnight."""
        ...
