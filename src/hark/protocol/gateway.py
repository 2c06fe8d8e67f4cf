"""The port between HTTP and the agent: what a program or a page may ask of it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from hark.protocol.events import AnyEvent, QuestionAsked
from hark.protocol.messages import AssistantMessage, Note, UserMessage
from hark.protocol.receipts import Refusal
from hark.protocol.schedules import Schedules
from hark.protocol.store import Hit
from hark.protocol.surface import QueueSession

PastMessage = UserMessage | AssistantMessage | Note


class GatewayState(StrEnum):
    """How the gateway stands: it begins, serves, or lets what runs come to its end."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class SessionRow(Struct, frozen=True):
    """A session in a list. `is_open`: a turn of it has begun and not ended; `is_waiting`: a message may run."""

    session: str
    title: str
    turns: int
    updated_at: float
    is_open: bool
    is_waiting: bool


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


class Past(Struct, frozen=True):
    """The transcript, and those of its turns that an end of the program cut and `/continue` would go on with."""

    rows: list[dict[str, Any]]
    cut: list[str]


class RunningTurn(Struct, frozen=True):
    """What runs, for whoever comes only now: the reply so far, but for about the last second, and what is asked."""

    turn: str
    text: str = ""
    questions: tuple[QuestionAsked, ...] = ()


class EventReader(Protocol):
    """A session's events, from the moment that it was made."""

    async def take(self) -> list[AnyEvent]:
        """Return all that came, in order; wait when nothing did. None means that the session is closed."""
        ...

    def close(self) -> None:
        """Take no more; `take` returns what came, and then nothing."""
        ...


class ApiSession(QueueSession, Protocol):
    """A session, as a program uses it. Reading alone neither makes a session nor wakes one that sleeps.

    What is said while the gateway drains is kept for after the restart.
    """

    async def has_known(self, message: str) -> bool:
        """Tell whether a message of that id was ever accepted here."""
        ...

    def running(self) -> RunningTurn | None:
        """Return what runs, as far as this process knows it."""
        ...

    async def past(self) -> Past:
        """Return what was said so far."""
        ...

    async def choose_route(self, route: str) -> Refusal | None:
        """Have a route serve first; "" for the usual order. Return why not."""
        ...

    def let_go(self) -> None:
        """Close it in this process as soon as nothing runs: nobody will say more soon. The next word opens it again."""
        ...

    def notice(self, code: str, text: str) -> None:
        """Tell whoever reads along."""
        ...

    def reader(self) -> EventReader:
        """Return a reader of the events from this call on."""
        ...


class Gateway(Protocol):
    """What HTTP may use of the agent."""

    @property
    def standing(self) -> GatewayState:
        """How it stands."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Its schedules."""
        ...

    def session(self, name: str) -> ApiSession:
        """Return a session; it is made when something is said in it.

        Raises:
            ValueError: A session can't have that name.
        """
        ...

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        ...

    async def sessions(self, words: str = "", limit: int = 200) -> list[SessionRow]:
        """Return the sessions, the last changed first; only those with these words in name or title."""
        ...

    async def search(self, words: str, limit: int = 50) -> list[Hit]:
        """Return the messages in which all the words stand, the newest first."""
        ...

    async def bring(self, session: str, past: Sequence[PastMessage]) -> bool:
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
