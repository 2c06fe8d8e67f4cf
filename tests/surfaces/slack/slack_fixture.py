"""A Slack surface that runs against the fake servers, and an ear for what it delivers."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from hark.protocol.chat import (
    Address,
    Author,
    Incoming,
)
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import APP_TOKEN, BOT_TOKEN
from tests.fakes.slack_server import FakeSlack, slack_server
from tests.waiting import until

ANN = Author("UANN", "Ann")
DM = Address("slack", "DANN")


@dataclass
class Ear:
    """What was delivered; `gate` holds a delivery back, `failing` refuses it."""

    heard: list[Incoming] = field(default_factory=list[Incoming])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    failing: list[Exception] = field(default_factory=list[Exception])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def deliver(self, incoming: Incoming) -> None:
        self.changed.set()
        await self.gate.wait()
        if self.failing:
            raise self.failing.pop()
        self.heard.append(incoming)
        self.changed.set()

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.heard)


def settings_for(slack: FakeSlack) -> SlackSettings:
    return SlackSettings(token=BOT_TOKEN, app_token=APP_TOKEN, api_base=f"{slack.url}/api/")


@asynccontextmanager
async def slacking(**changes: Any) -> AsyncGenerator[tuple[FakeSlack, SlackSurface, Ear]]:
    """A surface that runs, connected."""
    async with slack_server() as slack:
        surface = SlackSurface(structs.replace(settings_for(slack), **changes))
        ear = Ear()
        ear.gate.set()
        running = asyncio.create_task(surface.run(ear.deliver))
        try:
            await slack.until(lambda: bool(slack.sockets))
            yield slack, surface, ear
        finally:
            running.cancel()
            await asyncio.wait([running])
        assert running.cancelled()
