"""The Discord surface, run by discord.py against a server that speaks as Discord does."""

import asyncio
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from hark.protocol.chat import Address, Incoming, Written
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.surface import DiscordSurface
from tests.fakes.discord_payloads import DIRECT, GENERAL, THREAD
from tests.fakes.discord_server import TOKEN, DiscordServer
from tests.waiting import until

HOME = Address("discord", DIRECT)
ROOM = Address("discord", GENERAL)
SIDE = Address("discord", GENERAL, THREAD)

with warnings.catch_warnings():  # as the surface imports it; a test that patches it may be the first to do so
    warnings.simplefilter("ignore", DeprecationWarning)
    import_module("hark.surfaces.discord.gateway")


@dataclass
class Taken:
    """What was delivered. `failing` is raised by the next delivery; `gate` holds them while it is not set."""

    all: list[Incoming] = field(default_factory=list[Incoming])
    failing: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def __call__(self, incoming: Incoming) -> None:
        await self.gate.wait()
        if self.failing:
            raise self.failing.pop(0)
        self.all.append(incoming)
        self.changed.set()

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.all if isinstance(one, Written)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.all)

    async def count(self, number: int) -> list[Incoming]:
        await self.until(lambda: len(self.all) >= number)
        return self.all


@dataclass
class World:
    server: DiscordServer
    surface: DiscordSurface
    taken: Taken
    running: "asyncio.Task[None]"


@asynccontextmanager
async def running(surface: DiscordSurface, server: DiscordServer, taken: Taken) -> AsyncGenerator[World]:
    """Run the surface until the block ends; return into it when the gateway is ready."""
    task = asyncio.create_task(surface.run(taken))
    ready = asyncio.create_task(server.until(lambda: server.gateway.is_ready))
    try:
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield World(server, surface, taken, task)
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.wait([task, ready])


def surface_for(server: DiscordServer, position: Path | None = None, **settings: object) -> DiscordSurface:
    words = {"api_base": server.base, **settings}
    return DiscordSurface(DiscordSettings(**words), TOKEN, position)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def discord_world(position: Path | None = None, **settings: object) -> AsyncGenerator[World]:
    async with (
        DiscordServer().serving() as server,
        running(surface_for(server, position, **settings), server, Taken()) as world,
    ):
        yield world
