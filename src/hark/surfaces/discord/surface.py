"""Discord as a chat surface."""

import asyncio
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from hark.protocol.chat import Address, ChatError, Deliver, Outgoing, PlatformLimits
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.position import Position

if TYPE_CHECKING:
    from hark.surfaces.discord.rest import Rest

CHARACTERS = 2000
CONNECT_SECONDS = 5.0
KEY_SECONDS = 60.0


class DiscordSurface:
    """A ChatSurface. What it sends while it is not connected waits a moment, then is refused.

    `position` is a file in which it keeps how far Discord's events were dealt with, so that a restart misses none.
    """

    def __init__(self, settings: DiscordSettings, token: str, position: Path | None = None) -> None:
        self._settings = settings
        self._token = token
        self._position = Position(position)
        self._rest: Rest | None = None
        self._is_up = asyncio.Event()

    @property
    def name(self) -> str:
        """Its name."""
        return "discord"

    @property
    def manners(self) -> PlatformLimits:
        """What Discord allows. Its nonces are our keys: it takes the same one once, for "a few minutes"."""
        return PlatformLimits(CHARACTERS, 1.2, knows_keys=True, key_seconds=KEY_SECONDS, has_reactions=True)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled. What `deliver` could not take comes again with the next run.

        Raises:
            ChatError: Discord can't be reached or refuses us; whoever runs it tries again later.
        """
        if not self._token:
            raise ChatError("Discord needs a bot token: set token_env or token in [surfaces.discord].")
        try:
            with warnings.catch_warnings():  # of the sound library for calls, which we make none of
                warnings.simplefilter("ignore", DeprecationWarning)
                from hark.surfaces.discord.gateway import GatewayConnection
        except ImportError as error:
            raise ChatError("discord.py is not installed: pip install 'hark-agent[discord]'.") from error
        async with GatewayConnection(self._settings, self._token, self._position) as link:
            self._rest = link.rest
            self._is_up.set()
            try:
                await link.receive(deliver)
            finally:
                self._is_up.clear()
                self._rest = None

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return Discord's id of it.

        Raises:
            ChatError: It was not sent, or sending it again under its key does no harm.
        """
        return await (await self._connected()).send(address, message)

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours.

        Raises:
            ChatError: It was not changed.
        """
        await (await self._connected()).edit(address, message, new)

    async def typing(self, address: Address) -> None:
        """Show that we are at work, for ten seconds.

        Raises:
            ChatError: It can't be shown.
        """
        await (await self._connected()).typing(address)

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a person's message.

        Raises:
            ChatError: It can't be put there.
        """
        await (await self._connected()).react(address, message, sign)

    async def _connected(self) -> "Rest":
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._is_up.wait()
        except TimeoutError:
            raise ChatError("Discord is not connected.", retry_after=1.0) from None
        assert self._rest is not None
        return self._rest
