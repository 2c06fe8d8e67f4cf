"""Telegram as a chat surface: receives by long polling and sends through the Bot API."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio

from hark.protocol.chat import ChatError, ChatSurface, Deliver
from hark.surfaces.chat.connected_surface import ConnectedSurface
from hark.surfaces.chat.recent_values import ButtonValues
from hark.surfaces.chat.settings import PlatformServices, resolve_secret
from hark.surfaces.telegram.limits import BUTTON_BYTES, LIMITS
from hark.surfaces.telegram.platform import TelegramSettings

# The types and methods that we use. The types nested in them are built along with them.
USED_TYPES = (
    *("User", "Chat", "Message", "CallbackQuery", "Update", "File", "ResponseParameters", "ReplyParameters"),
    *("LinkPreviewOptions", "ReactionTypeEmoji", "InlineKeyboardButton", "InlineKeyboardMarkup"),
)
USED_METHODS = (
    *("SendMessage", "EditMessageText", "SendVoice", "SendDocument", "SendChatAction", "SetMessageReaction"),
    *("AnswerCallbackQuery", "GetFile", "GetMe", "GetUpdates"),
)
SHUTDOWN_SECONDS = 0.8
NO_TOKEN = "Telegram needs a bot token: set token_env or token in [surfaces.telegram]."  # noqa: S105
NO_LIBRARY = 'Telegram support is not installed. Run: pip install "hark-agent[telegram]"'


class TelegramSurface(ConnectedSurface):
    """The chat surface for one Telegram bot. It can send only while `run` is running."""

    name = "telegram"
    limits = LIMITS

    def __init__(self, settings: TelegramSettings) -> None:
        super().__init__()
        self._settings = settings
        self._values = ButtonValues(BUTTON_BYTES)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled, then close all connections. An update is confirmed after `deliver` has returned.

        Raises:
            ChatError: Telegram can't be reached or refused the request.
        """
        token = resolve_secret(self._settings.token, self._settings.token_env)
        if not token:
            raise ChatError(NO_TOKEN)
        try:
            await asyncio.to_thread(_load_modules)
        except ImportError as error:
            raise ChatError(NO_LIBRARY) from error
        from hark.surfaces.telegram.client import TelegramClient
        from hark.surfaces.telegram.receiving import UpdateReceiver
        from hark.surfaces.telegram.sending import TelegramWriter

        client = TelegramClient(token, self._settings.api_base)
        try:
            bot = await client.get_me()
            with self.use_writer(TelegramWriter(client, self._values)):
                await UpdateReceiver(client, bot, self._settings, self._values).run(deliver)
        finally:
            with anyio.move_on_after(SHUTDOWN_SECONDS, shield=True):
                await client.close()


def load_library() -> None:
    """Import aiogram, but build validators only for the types that we use. Building all 400 takes seconds.

    Types of other libraries that are imported during this call are built as usual.
    """
    from pydantic import BaseModel

    original_rebuild: Callable[..., bool | None] = vars(BaseModel)["model_rebuild"].__func__
    deferred: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {}

    def defer_rebuild(model: type[BaseModel], **options: Any) -> bool | None:
        if not model.__module__.startswith("aiogram.types."):
            return original_rebuild(model, **options)
        deferred[model.__name__] = model, options
        return None

    setattr(BaseModel, "model_rebuild", classmethod(defer_rebuild))  # noqa: B010
    try:
        import_module("aiogram.types")
    finally:
        setattr(BaseModel, "model_rebuild", classmethod(original_rebuild))  # noqa: B010
    for name in USED_TYPES:
        if name in deferred:
            model, how = deferred[name]
            model.model_rebuild(**how)
    methods = vars(import_module("aiogram.methods"))
    for name in USED_METHODS if deferred else ():
        methods[name].model_rebuild(**deferred[USED_TYPES[0]][1])


def _load_modules() -> None:
    """Import the slow modules. Runs in a thread, because the import takes a second."""
    load_library()
    for module in ("hark.surfaces.telegram.receiving", "hark.surfaces.telegram.sending", "markdown_it.tree"):
        import_module(module)


def make_surface(settings: TelegramSettings, services: PlatformServices) -> ChatSurface:
    """Return a Telegram surface with these settings."""
    return TelegramSurface(settings)
