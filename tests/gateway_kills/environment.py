"""The environment of the gateway kill test: people, platforms, model and speech around a gateway."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.gateway_kills.expectations import Book
from tests.gateway_kills.gateway import Gateway
from tests.gateway_kills.kill_points import KillPoint
from tests.gateway_kills.model import Model
from tests.gateway_kills.person import Person
from tests.gateway_kills.platforms.api import ApiClient
from tests.gateway_kills.platforms.discord import FakeDiscord
from tests.gateway_kills.platforms.slack import FakeSlackWorkspace
from tests.gateway_kills.platforms.telegram import FakeTelegram
from tests.gateway_kills.platforms.webhook import Programs
from tests.gateway_kills.speech import Speech


@dataclass(frozen=True, slots=True)
class Plan:
    """How large the run is; after so many seconds nobody writes any more."""

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
    telegram: FakeTelegram
    slack: FakeSlackWorkspace
    discord: FakeDiscord
    programs: Programs
    api: ApiClient
    gateway: Gateway
    kill_point: KillPoint
    people: list[Person]
    connect_seconds: list[float] = field(default_factory=list[float])
    wedged: str = ""

    @property
    def chats(self) -> dict[str, Person]:
        """One person of each chat, by its session."""
        return {person.fixture.session: person for person in self.people}

    @property
    def database(self) -> Path:
        return self.home / "hark.db"

    @property
    def ledger(self) -> Path:
        return self.home / "gateway.db"

    @property
    def backlog(self) -> int:
        return self.telegram.unconfirmed + len(self.slack.unacked)
