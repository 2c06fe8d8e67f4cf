"""The environment of the gateway kill test: users, platforms, model and speech service around a gateway."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.gateway_kills.expectations import Expectations
from tests.gateway_kills.gateway import Gateway
from tests.gateway_kills.kill_points import KillPoint
from tests.gateway_kills.model import KillTestModel
from tests.gateway_kills.platforms.api import ApiClient
from tests.gateway_kills.platforms.discord import FakeDiscord
from tests.gateway_kills.platforms.slack import FakeSlack
from tests.gateway_kills.platforms.telegram import FakeTelegram
from tests.gateway_kills.platforms.webhook import WebhookPrograms
from tests.gateway_kills.speech import SpeechServer
from tests.gateway_kills.user import KillTestUser


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run. After `seconds`, users send no more messages."""

    chats: int
    messages: int
    kill_seconds: float
    per_second: float
    seed: int
    seconds: float = float("inf")


@dataclass(slots=True)
class GatewayEnvironment:
    """The simulated users, platforms and servers around the gateway. They outlive the gateway's processes."""

    plan: Plan
    home: Path
    expectations: Expectations
    model: KillTestModel
    speech: SpeechServer
    telegram: FakeTelegram
    slack: FakeSlack
    discord: FakeDiscord
    programs: WebhookPrograms
    api: ApiClient
    gateway: Gateway
    kill_point: KillPoint
    users: list[KillTestUser]
    connect_seconds: list[float] = field(default_factory=list[float])
    stuck_work: str = ""

    @property
    def chats(self) -> dict[str, KillTestUser]:
        """One user per chat, by session."""
        return {person.fixture.session: person for person in self.users}

    @property
    def database(self) -> Path:
        return self.home / "hark.db"

    @property
    def ledger(self) -> Path:
        return self.home / "gateway.db"

    @property
    def backlog(self) -> int:
        return self.telegram.unconfirmed + len(self.slack.unacked)
