"""Telegram as a chat surface: long polling in, calls of the Bot API out."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio

from hark.protocol.chat import ChatError, ChatSurface, Deliver
from hark.surfaces.chat.connected import ConnectedSurface
from hark.surfaces.chat.recent_values import ButtonValues
from hark.surfaces.chat.settings import PlatformServices, secret
from hark.surfaces.telegram.limits import BUTTON_BYTES, LIMITS
from hark.surfaces.telegram.platform import TelegramSettings

# What we ask for, and what we put into our calls; what stands in these is built with them.
USED = (
    *("User", "Chat", "Message", "CallbackQuery", "Update", "File", "ResponseParameters", "ReplyParameters"),
    *("LinkPreviewOptions", "ReactionTypeEmoji", "InlineKeyboardButton", "InlineKeyboardMarkup"),
)
CALLED = (
    *("SendMessage", "EditMessageText", "SendVoice", "SendDocument", "SendChatAction", "SetMessageReaction"),
    *("AnswerCallbackQuery", "GetFile", "GetMe", "GetUpdates"),
)
END_SECONDS = 0.8
NO_TOKEN = "Telegram needs the token of a bot: set token_env or token in [surfaces.telegram]."  # noqa: S105
NO_LIBRARY = 'Telegram needs the extra package: pip install "hark-agent[telegram]"'


class Telegram(ConnectedSurface):
    """One bot. It sends while it runs; before and after, sending is refused for a moment."""

    name = "telegram"
    limits = LIMITS

    def __init__(self, settings: TelegramSettings) -> None:
        super().__init__()
        self._settings = settings
        self._values = ButtonValues(BUTTON_BYTES)

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
            with self.connected(Writer(client, self._values)):
                await Receiver(client, me, self._settings, self._values).run(deliver)
        finally:
            with anyio.move_on_after(END_SECONDS, shield=True):
                await client.end()


def load_library() -> None:
    """Import it. It builds a validator for each of its 400 types, for seconds; so only those that we use are built.

    Meanwhile the types of other libraries are built as ever.
    """
    from pydantic import BaseModel

    build: Callable[..., bool | None] = vars(BaseModel)["model_rebuild"].__func__
    left: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {}

    def put_off(kind: type[BaseModel], **how: Any) -> bool | None:
        if not kind.__module__.startswith("aiogram.types."):
            return build(kind, **how)
        left[kind.__name__] = kind, how
        return None

    setattr(BaseModel, "model_rebuild", classmethod(put_off))  # noqa: B010
    try:
        import_module("aiogram.types")
    finally:
        setattr(BaseModel, "model_rebuild", classmethod(build))  # noqa: B010
    for name in USED:
        if name in left:
            kind, how = left[name]
            kind.model_rebuild(**how)
    calls = vars(import_module("aiogram.methods"))
    for name in CALLED if left else ():
        calls[name].model_rebuild(**left[USED[0]][1])


def _load() -> None:
    """Import what is heavy: it takes a second, in which others go on."""
    load_library()
    for part in ("hark.surfaces.telegram.receiving", "hark.surfaces.telegram.sending", "markdown_it.tree"):
        import_module(part)


def make_surface(settings: TelegramSettings, services: PlatformServices) -> ChatSurface:
    """Return the surface that the settings describe."""
    return Telegram(settings)
