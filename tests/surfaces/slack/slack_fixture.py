"""A Slack surface that runs against the fake server, and a recorder of its deliveries."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from hark.protocol.chat import (
    Address,
    Author,
    IncomingEvent,
)
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.surface import SlackSurface
from tests.fakes.slack_payloads import APP_TOKEN, BOT_TOKEN
from tests.fakes.slack_server import SlackServer, slack_server
from tests.waiting import until

ANN = Author("UANN", "Ann")
DM = Address("slack", "DANN")


@dataclass
class DeliveryRecorder:
    """Records deliveries. Each waits while `gate` is closed, then raises an error from `errors` if any remain."""

    events: list[IncomingEvent] = field(default_factory=list[IncomingEvent])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    errors: list[Exception] = field(default_factory=list[Exception])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def deliver(self, incoming: IncomingEvent) -> None:
        self.changed.set()
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop()
        self.events.append(incoming)
        self.changed.set()

    async def until(self, is_done: Callable[[], bool]) -> None:
        await until(is_done, changed=self.changed, shows=lambda: self.events)


def slack_settings(slack: SlackServer) -> SlackSettings:
    return SlackSettings(token=BOT_TOKEN, app_token=APP_TOKEN, api_base=f"{slack.url}/api/")


@asynccontextmanager
async def running_slack(**changes: Any) -> AsyncGenerator[tuple[SlackServer, SlackSurface, DeliveryRecorder]]:
    """Run a connected Slack surface. Yields the fake server, the surface and the recorder."""
    async with slack_server() as slack:
        surface = SlackSurface(structs.replace(slack_settings(slack), **changes))
        recorder = DeliveryRecorder()
        recorder.gate.set()
        running = asyncio.create_task(surface.run(recorder.deliver))
        try:
            await slack.until(lambda: bool(slack.sockets))
            yield slack, surface, recorder
        finally:
            running.cancel()
            await asyncio.wait([running])
        assert running.cancelled()
