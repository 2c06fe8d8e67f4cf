"""`[surfaces.telegram]`."""

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class TelegramSettings(ChatSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every chat surface may be told; the token is that of @BotFather, `api_base` a Bot API server of one's own.

    `poll_seconds`: how long one request waits for messages.
    """

    token_env: str = "TELEGRAM_BOT_TOKEN"  # noqa: S105
    api_base: str = "https://api.telegram.org"
    poll_seconds: int = 25


PLATFORM = ChatPlatform("telegram", TelegramSettings)
