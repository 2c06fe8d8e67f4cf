"""The port between an editor and the agent: sessions, each at work in a folder that the editor names."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from hark.protocol.commands import Delivery
from hark.protocol.messages import Call, Message
from hark.protocol.receipts import Refusal
from hark.protocol.rules import ApprovalMode
from hark.protocol.surface import AwaitedSession


class PlaceError(Exception):
    """A session can't be had there; the text says why, and what to do."""


class UnknownSession(PlaceError):
    """There is no session of that name."""


class Workspace(Struct, frozen=True):
    """Where a session works: an absolute folder, and MCP servers by name, as `[mcp.servers.NAME]` has them."""

    folder: str
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


class Listed(Struct, frozen=True):
    """A session in an editor's list. `updated_at` is Unix time."""

    session: str
    folder: str
    title: str
    updated_at: float


class CommandLine(Struct, frozen=True):
    """A slash command on offer: its name, what it takes, and what it does in a few words."""

    name: str
    takes: str
    help: str


class SessionStatus(Struct, frozen=True):
    """How a session stands: what it is called, how often it asks, and which of its routes serves first."""

    title: str
    mode: ApprovalMode
    route: str
    routes: tuple[str, ...]


class EditorSession(AwaitedSession, Protocol):
    """One session, as an editor uses it.

    What is said is on its way, and can be interrupted, from the call's first step on.
    """

    @property
    def folder(self) -> str:
        """Where it works."""
        ...

    @property
    def delivery(self) -> Delivery:
        """What a prompt does to one that still runs."""
        ...

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
        ...

    def command(self, text: str) -> Awaitable[str] | None:
        """Return a slash command to be awaited for what it says; None when the text is none."""
        ...

    def call(self, name: str) -> Call | None:
        """Return a call of the running turn's last reply."""
        ...

    async def transcript(self) -> list[Message]:
        """Return what was said."""
        ...

    async def standing(self) -> SessionStatus:
        """Return how it stands."""
        ...

    async def choose_mode(self, mode: ApprovalMode) -> Refusal | None:
        """Ask more or less often from now on; return why not."""
        ...

    async def choose_route(self, route: str) -> Refusal | None:
        """Have a route serve first, from the next turn on; return why not."""
        ...


class EditorPort(Protocol):
    """The agent, as an editor uses it."""

    @property
    def commands(self) -> Sequence[CommandLine]:
        """The slash commands."""
        ...

    async def create(self, place: Workspace) -> EditorSession:
        """Return a new session.

        Raises:
            PlaceError: Nothing can work there.
        """
        ...

    async def open(self, session: str, place: Workspace) -> EditorSession:
        """Return a session that is there already.

        Raises:
            UnknownSession: It is not.
            PlaceError: Nothing can work there.
        """
        ...

    async def listed(self, folder: str | None) -> list[Listed]:
        """Return the editors' sessions, of one folder or of all, the last changed first.

        Raises:
            PlaceError: They can't be read.
        """
        ...
