"""The whole of the fire test: people, platforms, model and speech, around a gateway that is killed again and again."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.gateway_kills.expectations import Book
from tests.gateway_kills.gateway import Gateway
from tests.gateway_kills.kill_points import Trap
from tests.gateway_kills.model import Model
from tests.gateway_kills.person import Person
from tests.gateway_kills.platforms.api import ApiClient
from tests.gateway_kills.platforms.discord import DiscordTown
from tests.gateway_kills.platforms.slack import SlackTown
from tests.gateway_kills.platforms.telegram import TelegramTown
from tests.gateway_kills.platforms.webhook import Programs
from tests.gateway_kills.speech import Speech


@dataclass(frozen=True, slots=True)
class Plan:
    """How large the fire is; after so many seconds nobody writes any more."""

    chats: int
    messages: int
    kill_seconds: float
    per_second: float
    seed: int
    seconds: float = float("inf")


@dataclass(slots=True)
class World:
    """All that outlives the gateway."""

    plan: Plan
    home: Path
    book: Book
    model: Model
    speech: Speech
    telegram: TelegramTown
    slack: SlackTown
    discord: DiscordTown
    programs: Programs
    api: ApiClient
    gateway: Gateway
    trap: Trap
    people: list[Person]
    connect_seconds: list[float] = field(default_factory=list[float])
    wedged: str = ""

    @property
    def chats(self) -> dict[str, Person]:
        """One person of each chat, by its session."""
        return {person.seat.session: person for person in self.people}

    @property
    def database(self) -> Path:
        return self.home / "hark.db"

    @property
    def ledger(self) -> Path:
        return self.home / "gateway.db"

    @property
    def backlog(self) -> int:
        return self.telegram.unconfirmed + len(self.slack.unacked)
