"""Chat surfaces whose connection can be lost and re-established."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from hark.protocol.chat import Address, ChatError, ChatWriter, OutgoingMessage

RETRY_SECONDS = 1.0


class ConnectedSurface:
    """The base of surfaces that send only while connected. Calls wait `connect_seconds` for a connection, then fail."""

    name = ""
    connect_seconds = 5.0

    def __init__(self) -> None:
        self._writer: ChatWriter | None = None
        self._is_connected = asyncio.Event()

    @contextmanager
    def use_writer(self, writer: ChatWriter) -> Generator[None]:
        """Send through this writer until the context ends."""
        self._writer = writer
        self._is_connected.set()
        try:
            yield
        finally:
            self._is_connected.clear()
            self._writer = None

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Send a message and return its platform id."""
        return await (await self._wait_for_writer()).send(address, message)

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Edit a message that the bot sent."""
        await (await self._wait_for_writer()).edit(address, message, new)

    async def show_typing(self, address: Address) -> None:
        """Show the typing indicator."""
        await (await self._wait_for_writer()).show_typing(address)

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Add a reaction to a user's message."""
        await (await self._wait_for_writer()).react(address, message, reaction)

    async def _wait_for_writer(self) -> ChatWriter:
        try:
            async with asyncio.timeout(self.connect_seconds):
                await self._is_connected.wait()
        except TimeoutError:
            raise ChatError(f"{self.name.title()} is not connected.", RETRY_SECONDS) from None
        assert self._writer is not None
        return self._writer
