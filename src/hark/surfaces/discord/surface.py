"""Discord as a chat surface."""

import warnings
from pathlib import Path

from hark.protocol.chat import ChatError, ChatSurface, Deliver, PlatformLimits
from hark.surfaces.chat.connected_surface import ConnectedSurface
from hark.surfaces.chat.settings import PlatformServices, resolve_secret
from hark.surfaces.discord.markup import MAX_CHARACTERS
from hark.surfaces.discord.platform import DiscordSettings
from hark.surfaces.discord.position_tracker import PositionTracker

KEY_SECONDS = 60.0


class DiscordSurface(ConnectedSurface):
    """The chat surface for one Discord bot. Without a connection, sending waits briefly and then fails.

    `position` is the file that stores the position of the last processed event, so that a restart misses no event.
    """

    name = "discord"
    # Our keys are sent as nonces. Discord recognizes a repeated nonce for "a few minutes".
    limits = PlatformLimits(MAX_CHARACTERS, 1.2, knows_keys=True, key_seconds=KEY_SECONDS, has_reactions=True)

    def __init__(self, settings: DiscordSettings, token: str, position: Path | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._token = token
        self._position = PositionTracker(position)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled. Events that `deliver` failed to process are delivered again by the next run.

        Raises:
            ChatError: Discord can't be reached or refused the connection. The caller can try again later.
        """
        if not self._token:
            raise ChatError("Discord needs a bot token: set token_env or token in [surfaces.discord].")
        try:
            with warnings.catch_warnings():  # from the audio library for voice calls, which we don't use
                warnings.simplefilter("ignore", DeprecationWarning)
                from hark.surfaces.discord.gateway import GatewayConnection
        except ImportError as error:
            raise ChatError("discord.py is not installed: pip install 'hark-agent[discord]'.") from error
        async with GatewayConnection(self._settings, self._token, self._position) as connection:
            with self.use_writer(connection.rest):
                await connection.receive(deliver)


def make_surface(settings: DiscordSettings, services: PlatformServices) -> ChatSurface:
    """Return a Discord surface with these settings."""
    return DiscordSurface(settings, resolve_secret(settings.token, settings.token_env), services.home / "discord.json")
