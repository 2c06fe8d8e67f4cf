"""The Discord surface, run by discord.py against a fake server that implements Discord's protocol."""

import asyncio
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from hark.protocol.chat import Address, IncomingEvent, IncomingMessage
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.surface import DiscordSurface
from tests.fakes.discord_payloads import DIRECT, GENERAL, THREAD
from tests.fakes.discord_server import TOKEN, DiscordServer
from tests.waiting import until

DIRECT_ADDRESS = Address("discord", DIRECT)
CHANNEL_ADDRESS = Address("discord", GENERAL)
THREAD_ADDRESS = Address("discord", GENERAL, THREAD)

# as the surface imports it; a test that patches this module may be the first to import it
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import_module("hark.surfaces.discord.gateway")


@dataclass
class DeliveryRecorder:
    """Records deliveries. Each waits while `gate` is closed, then raises an error from `errors` if any remain."""

    events: list[IncomingEvent] = field(default_factory=list[IncomingEvent])
    errors: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def __call__(self, incoming: IncomingEvent) -> None:
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.events.append(incoming)
        self.changed.set()

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, IncomingMessage)]

    async def until(self, is_done: Callable[[], bool]) -> None:
        await until(is_done, changed=self.changed, shows=lambda: self.events)

    async def wait_for(self, count: int) -> list[IncomingEvent]:
        await self.until(lambda: len(self.events) >= count)
        return self.events


@dataclass
class RunningSurface:
    server: DiscordServer
    surface: DiscordSurface
    recorder: DeliveryRecorder
    running: "asyncio.Task[None]"


@asynccontextmanager
async def running_surface(
    surface: DiscordSurface, server: DiscordServer, recorder: DeliveryRecorder
) -> AsyncGenerator[RunningSurface]:
    """Run the surface during the `with` block, which starts when the gateway is ready."""
    task = asyncio.create_task(surface.run(recorder))
    ready = asyncio.create_task(server.until(lambda: server.gateway.is_ready))
    try:
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield RunningSurface(server, surface, recorder, task)
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.wait([task, ready])


def make_discord_surface(server: DiscordServer, position: Path | None = None, **settings: object) -> DiscordSurface:
    options = {"api_base": server.base, **settings}
    return DiscordSurface(DiscordSettings(**options), TOKEN, position)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def running_discord(position: Path | None = None, **settings: object) -> AsyncGenerator[RunningSurface]:
    async with (
        DiscordServer().serving() as server,
        running_surface(make_discord_surface(server, position, **settings), server, DeliveryRecorder()) as world,
    ):
        yield world
