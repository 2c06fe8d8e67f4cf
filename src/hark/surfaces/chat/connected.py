"""Chat surfaces that send through a connection which comes and goes."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from hark.protocol.chat import Address, ChatError, ChatWriter, Outgoing

SOON_SECONDS = 1.0


class ConnectedSurface:
    """Base of a surface whose writer exists while it is connected. A message waits a moment for it, or is refused."""

    name = ""
    connect_seconds = 5.0

    def __init__(self) -> None:
        self._writer: ChatWriter | None = None
        self._is_connected = asyncio.Event()

    @contextmanager
    def connected(self, writer: ChatWriter) -> Generator[None]:
        """Send through this writer until the end of the context."""
        self._writer = writer
        self._is_connected.set()
        try:
            yield
        finally:
            self._is_connected.clear()
            self._writer = None

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return the platform's id of it."""
        return await (await self._reach()).send(address, message)

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours."""
        await (await self._reach()).edit(address, message, new)

    async def typing(self, address: Address) -> None:
        """Show that we are at work."""
        await (await self._reach()).typing(address)

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a person's message."""
        await (await self._reach()).react(address, message, sign)

    async def _reach(self) -> ChatWriter:
        try:
            async with asyncio.timeout(self.connect_seconds):
                await self._is_connected.wait()
        except TimeoutError:
            raise ChatError(f"{self.name.title()} is not connected.", SOON_SECONDS) from None
        assert self._writer is not None
        return self._writer
