"""The settings of `[surfaces.discord]`."""

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class DiscordSettings(ChatSettings, frozen=True, omit_defaults=True):
    """Settings of the Discord surface. `catch_up`: the maximum number of missed messages read per chat; 0 for none."""

    catch_up: int = 1000


PLATFORM = ChatPlatform("discord", DiscordSettings)
