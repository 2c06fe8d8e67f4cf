"""The Telegram surface on a server of the test, with what it delivered."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hark.protocol.chat import Address, Incoming, Outgoing
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import Telegram
from tests.fakes.telegram_payloads import TOKEN
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.waiting import until

HOME = Address("telegram", "1")


@dataclass
class Taken:
    """Takes what is delivered; `gate` holds it, `failing` refuses it."""

    incoming: list[Incoming] = field(default_factory=list[Incoming])
    failing: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def deliver(self, incoming: Incoming) -> None:
        self.begun.set()
        await self.gate.wait()
        if self.failing:
            raise self.failing.pop(0)
        self.incoming.append(incoming)
        self.changed.set()

    async def until(self, is_true: Callable[[], bool]) -> None:
        await until(is_true, changed=self.changed, shows=lambda: self.incoming)

    async def number(self, count: int) -> list[Incoming]:
        """Wait until so many came."""
        await self.until(lambda: len(self.incoming) >= count)
        return self.incoming


@dataclass
class Bot:
    """A surface at work."""

    server: TelegramServer
    surface: Telegram
    taken: Taken
    running: asyncio.Task[None]

    async def send(self, text: str, *buttons: Any, address: Address = HOME, **more: Any) -> str:
        return await self.surface.send(address, Outgoing(text, tuple(buttons), **more))


@asynccontextmanager
async def telegram_bot(**settings: Any) -> AsyncGenerator[Bot]:
    """A bot that runs, on a server of its own."""
    async with telegram_server() as server:
        surface = Telegram(TelegramSettings(token=TOKEN, api_base=server.address, **settings))
        taken = Taken()
        running = asyncio.create_task(surface.run(taken.deliver))
        bot = Bot(server, surface, taken, running)
        try:
            await server.until(lambda: "getupdates" in server.calls)  # from now on it can send
            yield bot
        finally:
            running.cancel()
            await asyncio.wait([running])
