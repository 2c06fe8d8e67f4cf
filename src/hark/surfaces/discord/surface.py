"""Discord as a chat surface."""

import warnings
from pathlib import Path

from hark.protocol.chat import ChatError, ChatSurface, Deliver, PlatformLimits
from hark.surfaces.chat.connected import ConnectedSurface
from hark.surfaces.chat.settings import PlatformServices, secret
from hark.surfaces.discord.markup import CHARACTERS
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.position import Position

KEY_SECONDS = 60.0


class DiscordSurface(ConnectedSurface):
    """A ChatSurface. What it sends while it is not connected waits a moment, then is refused.

    `position` is a file in which it keeps how far Discord's events were dealt with, so that a restart misses none.
    """

    name = "discord"
    # Its nonces are our keys: it takes the same one once, for "a few minutes".
    limits = PlatformLimits(CHARACTERS, 1.2, knows_keys=True, key_seconds=KEY_SECONDS, has_reactions=True)

    def __init__(self, settings: DiscordSettings, token: str, position: Path | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._token = token
        self._position = Position(position)

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
            with self.connected(link.rest):
                await link.receive(deliver)


def make_surface(settings: DiscordSettings, services: PlatformServices) -> ChatSurface:
    """Return the surface that the settings describe."""
    return DiscordSurface(settings, secret(settings.token, settings.token_env), services.home / "discord.json")
