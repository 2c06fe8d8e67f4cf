"""`[surfaces.discord]`: what the Discord surface may be told."""

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class DiscordSettings(ChatSettings, frozen=True, omit_defaults=True):
    """`catch_up`: how many messages of a chat are read at most after we were away for long; 0 for none."""

    catch_up: int = 1000


PLATFORM = ChatPlatform("discord", DiscordSettings)
