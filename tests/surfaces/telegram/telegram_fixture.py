"""The Telegram surface with a fake server, and a recorder of its deliveries."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hark.protocol.chat import Address, IncomingEvent, OutgoingMessage
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import TelegramSurface
from tests.fakes.telegram_payloads import TOKEN
from tests.fakes.telegram_server import TelegramServer, telegram_server
from tests.waiting import until

HOME = Address("telegram", "1")


@dataclass
class DeliveryRecorder:
    """Records deliveries. Each waits while `gate` is closed, then raises an error from `errors` if any remain."""

    events: list[IncomingEvent] = field(default_factory=list[IncomingEvent])
    errors: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def deliver(self, incoming: IncomingEvent) -> None:
        self.has_begun.set()
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.events.append(incoming)
        self.changed.set()

    async def until(self, is_done: Callable[[], bool]) -> None:
        await until(is_done, changed=self.changed, shows=lambda: self.events)

    async def wait_for(self, count: int) -> list[IncomingEvent]:
        """Wait until this many events were delivered, and return all of them."""
        await self.until(lambda: len(self.events) >= count)
        return self.events


@dataclass
class RunningBot:
    """A running Telegram surface with its server and recorder."""

    server: TelegramServer
    surface: TelegramSurface
    recorder: DeliveryRecorder
    running: asyncio.Task[None]

    async def send(self, text: str, *buttons: Any, address: Address = HOME, **more: Any) -> str:
        return await self.surface.send(address, OutgoingMessage(text, tuple(buttons), **more))


@asynccontextmanager
async def running_bot(**settings: Any) -> AsyncGenerator[RunningBot]:
    """Run a bot with its own fake server."""
    async with telegram_server() as server:
        surface = TelegramSurface(TelegramSettings(token=TOKEN, api_base=server.address, **settings))
        recorder = DeliveryRecorder()
        running = asyncio.create_task(surface.run(recorder.deliver))
        bot = RunningBot(server, surface, recorder, running)
        try:
            await server.until(lambda: "getupdates" in server.calls)  # from now on it can send
            yield bot
        finally:
            running.cancel()
            await asyncio.wait([running])
