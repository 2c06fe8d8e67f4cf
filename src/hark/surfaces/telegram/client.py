"""The Bot API, as this surface uses it: calls with errors in our words, updates, files."""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager
from typing import Any, TypeVar, cast

import aiohttp
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    AiogramError,
    ClientDecodeError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.methods import GetFile, GetMe, GetUpdates, TelegramMethod
from aiogram.types import Update, User
from aiogram.utils.token import TokenValidationError
from pydantic import ValidationError

from hark.protocol.chat import ChatError, ChatGone

_NOT_BEGUN = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
BAD_TOKEN = "Telegram does not know this token. Get the right one from @BotFather."  # noqa: S105
CONFLICT = (
    "Telegram gives this bot's messages to somebody else: another program asks for them, or a webhook is set. "
    "End that program, or call deleteWebhook; or use a bot of its own here."
)
T = TypeVar("T")
CALL_SECONDS = 30
KINDS = ["message", "edited_message", "callback_query"]


class Unanswered(ConnectionError):
    """The connection was lost before the answer: Telegram may have done it, or not."""


class RequestRefused(ChatGone):
    """Telegram refuses this very request, and would again; the text is its reason."""


class ChatMigrated(ChatError):
    """The group has another id now."""

    def __init__(self, chat: int) -> None:
        super().__init__(f"the group is {chat} now")
        self.chat = chat


@contextmanager
def in_our_words(token: str, *, is_repeatable: bool = True) -> Generator[None]:
    """Translate the errors of the client library.

    Raises:
        ChatError: It was not done; or not known, but doing it again does no harm.
        Unanswered: Not `is_repeatable`, and nobody knows whether it was done.
    """
    try:
        yield
    except (AiogramError, aiohttp.ClientError, TimeoutError) as error:
        found = _translated(error)
    else:
        return
    text = str(found).replace(token, "(token)") if token else str(found)
    found.args = (text,)
    if isinstance(found, Unanswered) and is_repeatable:
        raise ChatError(text) from None
    raise found from None  # the error behind it may have the token in its address


def _translated(error: Exception) -> ChatError | Unanswered:
    match error:
        case TelegramRetryAfter(retry_after=seconds):
            return ChatError(f"Telegram asks to wait {seconds} s.", float(seconds))
        case TelegramMigrateToChat(migrate_to_chat_id=chat):
            return ChatMigrated(chat)
        case TelegramForbiddenError(message=message) | TelegramEntityTooLarge(message=message):
            return ChatGone(message)
        case TelegramBadRequest(message=message):
            return RequestRefused(message)
        case TelegramUnauthorizedError() | TelegramNotFound():
            return ChatError(BAD_TOKEN)
        case TelegramConflictError():
            return ChatError(CONFLICT)
        case TelegramServerError(message=message):  # somewhere on its way: it may have been done
            return Unanswered(f"Telegram has trouble: {message}")
        case TelegramNetworkError(message=message) if isinstance(error.__cause__, _NOT_BEGUN):
            return ChatError(f"Telegram can't be reached: {message}")
        case TelegramNetworkError(message=message):
            return Unanswered(f"Telegram did not answer: {message}")
        case ClientDecodeError():
            return Unanswered("Telegram answered with something else than an answer.")
        case aiohttp.ClientResponseError(status=status):
            return ChatError(f"Telegram answered with status {status}.")
        case AiogramError():
            return ChatError(f"Telegram refuses: {error}")
        case _:
            return Unanswered(f"Telegram did not answer: {type(error).__name__}")


class _Session(AiohttpSession):
    """The library's own, but once it has ended it is not opened again behind our back."""

    def __init__(self, api: TelegramAPIServer) -> None:
        super().__init__(api=api, timeout=CALL_SECONDS)
        self._has_ended = False

    async def create_session(self) -> aiohttp.ClientSession:
        if self._has_ended:
            raise ChatError("The connection to Telegram was closed.")
        return await super().create_session()

    async def end(self) -> None:
        self._has_ended = True
        await self.close()


class TelegramClient:
    """One bot on one server. `end` it; what is under way then fails."""

    def __init__(self, token: str, api_base: str) -> None:
        """Connect with the first call.

        Raises:
            ChatError: That can't be a token.
        """
        self._token = token
        self._session = _Session(TelegramAPIServer.from_base(api_base))
        try:
            self._bot = Bot(token, self._session)
        except TokenValidationError:
            raise ChatError(BAD_TOKEN) from None

    async def end(self) -> None:
        """Close all connections."""
        await self._session.end()

    async def call(self, method: TelegramMethod[T], *, is_repeatable: bool = True) -> T:
        """Call a method.

        Raises:
            ChatError: It was not done.
            Unanswered: Not `is_repeatable`, and it is not known whether it was done.
        """
        with in_our_words(self._token, is_repeatable=is_repeatable):
            return await self._bot(method)

    async def me(self) -> User:
        """Return who we are.

        Raises:
            ChatError: Telegram can't be reached, or does not know us.
        """
        return await self.call(GetMe())

    async def updates(self, offset: int, seconds: int) -> list[tuple[int, Update | None]]:
        """Confirm all before `offset`, wait so long for more; return them by number, None for what can't be read.

        Raises:
            ChatError: Telegram can't be reached, or refuses.
        """
        method = GetUpdates(offset=offset or None, timeout=seconds, allowed_updates=KINDS)
        with in_our_words(self._token):
            try:
                updates = await self._bot(method, request_timeout=seconds + CALL_SECONDS)
            except ClientDecodeError as error:
                answer: object = error.data
                if not isinstance(answer, dict):
                    raise
                # One of them is of a shape that the library does not know: the others are read all the same.
                return [self._read(raw) for raw in cast("dict[str, Any]", answer).get("result", [])]
            return [(update.update_id, update) for update in updates]

    def _read(self, raw: dict[str, Any]) -> tuple[int, Update | None]:
        try:
            return int(raw["update_id"]), Update.model_validate(raw, context={"bot": self._bot})
        except ValidationError:
            return int(raw["update_id"]), None

    async def content(self, file: str) -> AsyncGenerator[bytes]:
        """Yield the content of a file.

        Raises:
            ChatGone: It is not there.
            ChatError: It could not be fetched.
        """
        found = await self.call(GetFile(file_id=file))
        if found.file_path is None:
            raise ChatGone("Telegram does not have it any more")
        with in_our_words(self._token):
            address = self._session.api.file_url(self._token, found.file_path)
            async with aclosing(self._session.stream_content(address, timeout=CALL_SECONDS)) as chunks:
                async for chunk in chunks:
                    yield chunk
