"""The settings of `[surfaces.telegram]`."""

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class TelegramSettings(ChatSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings of the Telegram surface, in addition to those of every chat surface.

    The token comes from @BotFather. `api_base` is the URL of the Bot API server, and `poll_seconds` the duration of a
    poll.
    """

    token_env: str = "TELEGRAM_BOT_TOKEN"  # noqa: S105
    api_base: str = "https://api.telegram.org"
    poll_seconds: int = 25


PLATFORM = ChatPlatform("telegram", TelegramSettings)
