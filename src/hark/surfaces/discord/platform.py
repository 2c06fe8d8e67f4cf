"""`[surfaces.discord]`: what the Discord surface may be told."""

from hark.protocol.chat import ChatSurface
from hark.surfaces.chat.settings import ChatPlatform, ChatSettings, PlatformServices, secret


class DiscordSettings(ChatSettings, frozen=True, omit_defaults=True):
    """`catch_up`: how many messages of a chat are read at most after we were away for long; 0 for none."""

    catch_up: int = 1000


def _make(settings: DiscordSettings, services: PlatformServices) -> ChatSurface:
    from hark.surfaces.discord.surface import DiscordSurface

    return DiscordSurface(settings, secret(settings.token, settings.token_env), services.home / "discord.json")


PLATFORM = ChatPlatform(DiscordSettings, _make)
