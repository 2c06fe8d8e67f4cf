"""Telegram as a chat surface: long polling in, calls of the Bot API out."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

import anyio

from hark.protocol.chat import Address, ChatError, Deliver, Outgoing, PlatformLimits
from hark.surfaces.chat.settings import secret
from hark.surfaces.telegram.buttons import Values
from hark.surfaces.telegram.import_aiogram import load_library
from hark.surfaces.telegram.platform import TelegramSettings

if TYPE_CHECKING:
    from hark.surfaces.telegram.sending import Writer

# Of 4096: signs such as 😀 count twice, and some markup shows a little more than its source.
MANNERS = PlatformLimits(characters=3800, edit_seconds=1.2, has_reactions=True)
END_SECONDS = 0.8
SOON_SECONDS = 1.0
NO_TOKEN = "Telegram needs the token of a bot: set token_env or token in [surfaces.telegram]."  # noqa: S105
NO_LIBRARY = 'Telegram needs the extra package: pip install "hark-agent[telegram]"'


class Telegram:
    """One bot. It sends while it runs; before and after, sending is refused for a moment."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._settings = settings
        self._values = Values()
        self._writer: Writer | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return "telegram"

    @property
    def manners(self) -> PlatformLimits:
        """What Telegram allows."""
        return MANNERS

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled; an update is confirmed after `deliver` has returned. Then all is closed.

        Raises:
            ChatError: Telegram can't be reached or refuses us.
        """
        token = secret(self._settings.token, self._settings.token_env)
        if not token:
            raise ChatError(NO_TOKEN)
        try:
            await asyncio.to_thread(_load)
        except ImportError as error:
            raise ChatError(NO_LIBRARY) from error
        from hark.surfaces.telegram.client import TelegramClient
        from hark.surfaces.telegram.receiving import Receiver
        from hark.surfaces.telegram.sending import Writer

        client = TelegramClient(token, self._settings.api_base)
        try:
            me = await client.me()
            self._writer = Writer(client, self._values)
            await Receiver(client, me, self._settings, self._values).run(deliver)
        finally:
            self._writer = None
            with anyio.move_on_after(END_SECONDS, shield=True):
                await client.end()

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return its id.

        Raises:
            ChatError: It was not sent.
            ConnectionError: The connection was lost before the answer: it may have been sent.
        """
        return await self._connected().send(address, message)

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours.

        Raises:
            ChatError: It was not changed.
        """
        await self._connected().edit(address, message, new)

    async def typing(self, address: Address) -> None:
        """Show that we are at work.

        Raises:
            ChatError: It can't be shown.
        """
        await self._connected().typing(address)

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a person's message.

        Raises:
            ChatError: It can't be put there.
        """
        await self._connected().react(address, message, sign)

    def _connected(self) -> "Writer":
        if self._writer is None:
            raise ChatError("Telegram is not connected.", SOON_SECONDS)
        return self._writer


def _load() -> None:
    """Import what is heavy: it takes a second, in which others go on."""
    load_library()
    for part in ("hark.surfaces.telegram.receiving", "hark.surfaces.telegram.sending", "markdown_it.tree"):
        import_module(part)
