"""The Bot API calls that this surface uses, with errors translated, updates parsed and files streamed."""

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

_NOT_SENT_ERRORS = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
BAD_TOKEN = "Telegram rejected the bot token. Get the right one from @BotFather."  # noqa: S105
CONFLICT = (
    "Another program receives this bot's messages from Telegram, or a webhook is set. "
    "Stop that program or call deleteWebhook, or use a separate bot here."
)
T = TypeVar("T")
CALL_SECONDS = 30
UPDATE_TYPES = ["message", "edited_message", "callback_query"]


class UnansweredRequest(ConnectionError):
    """The connection was lost before Telegram responded, so it is unknown whether the request took effect."""


class RequestRefused(ChatGone):
    """Telegram refused this request and would refuse it again. The text is Telegram's reason."""


class ChatMigrated(ChatError):
    """The group has a new id, because it became a supergroup."""

    def __init__(self, chat: int) -> None:
        super().__init__(f"the group's id has changed to {chat}")
        self.chat = chat


@contextmanager
def translate_errors(token: str, *, is_repeatable: bool = True) -> Generator[None]:
    """Translate the client library's errors.

    Raises:
        ChatError: The request had no effect, or its effect is unknown but the request can safely be repeated.
        UnansweredRequest: The result is unknown and `is_repeatable` is false.
    """
    try:
        yield
    except (AiogramError, aiohttp.ClientError, TimeoutError) as error:
        translated = _translate_error(error)
    else:
        return
    text = str(translated).replace(token, "(token)") if token else str(translated)
    translated.args = (text,)
    if isinstance(translated, UnansweredRequest) and is_repeatable:
        raise ChatError(text) from None
    raise translated from None  # Drop the cause: its URL may contain the token.


def _translate_error(error: Exception) -> ChatError | UnansweredRequest:
    match error:
        case TelegramRetryAfter(retry_after=seconds):
            return ChatError(f"Telegram's rate limit was reached. Wait {seconds} s.", float(seconds))
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
        case TelegramServerError(message=message):  # The request may have been carried out.
            return UnansweredRequest(f"Telegram had a server error: {message}")
        case TelegramNetworkError(message=message) if isinstance(error.__cause__, _NOT_SENT_ERRORS):
            return ChatError(f"Telegram can't be reached: {message}")
        case TelegramNetworkError(message=message):
            return UnansweredRequest(f"Telegram did not answer: {message}")
        case ClientDecodeError():
            return UnansweredRequest("Telegram's response could not be parsed.")
        case aiohttp.ClientResponseError(status=status):
            return ChatError(f"Telegram answered with status {status}.")
        case AiogramError():
            return ChatError(f"Telegram refused the request: {error}")
        case _:
            return UnansweredRequest(f"Telegram did not answer: {type(error).__name__}")


class _ClosableSession(AiohttpSession):
    """The library's HTTP session. Once closed permanently, it can't be reopened by the library."""

    def __init__(self, api: TelegramAPIServer) -> None:
        super().__init__(api=api, timeout=CALL_SECONDS)
        self._has_ended = False

    async def create_session(self) -> aiohttp.ClientSession:
        if self._has_ended:
            raise ChatError("The connection to Telegram was closed.")
        return await super().create_session()

    async def close_permanently(self) -> None:
        self._has_ended = True
        await self.close()


class TelegramClient:
    """One bot on one Bot API server. `close` makes the calls in progress fail."""

    def __init__(self, token: str, api_base: str) -> None:
        """Create the client. It connects on the first call.

        Raises:
            ChatError: The token is malformed.
        """
        self._token = token
        self._session = _ClosableSession(TelegramAPIServer.from_base(api_base))
        try:
            self._bot = Bot(token, self._session)
        except TokenValidationError:
            raise ChatError(BAD_TOKEN) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close_permanently()

    async def call(self, method: TelegramMethod[T], *, is_repeatable: bool = True) -> T:
        """Call a Bot API method and return its result.

        Raises:
            ChatError: The request had no effect, or its effect is unknown but the request can safely be repeated.
            UnansweredRequest: The result is unknown and `is_repeatable` is false.
        """
        with translate_errors(self._token, is_repeatable=is_repeatable):
            return await self._bot(method)

    async def get_me(self) -> User:
        """Return the bot's own user.

        Raises:
            ChatError: Telegram can't be reached, or rejected the token.
        """
        return await self.call(GetMe())

    async def get_updates(self, offset: int, wait_seconds: int) -> list[tuple[int, Update | None]]:
        """Confirm all updates before `offset`, wait for new updates, and return them as pairs of number and update.

        An invalid update is None.

        Raises:
            ChatError: Telegram can't be reached, or refused the request.
        """
        method = GetUpdates(offset=offset or None, timeout=wait_seconds, allowed_updates=UPDATE_TYPES)
        with translate_errors(self._token):
            try:
                updates = await self._bot(method, request_timeout=wait_seconds + CALL_SECONDS)
            except ClientDecodeError as error:
                answer: object = error.data
                if not isinstance(answer, dict):
                    raise
                # One update has a shape that the library doesn't know. Parse the others one by one.
                return [self._parse_update(raw) for raw in cast("dict[str, Any]", answer).get("result", [])]
            return [(update.update_id, update) for update in updates]

    def _parse_update(self, raw: dict[str, Any]) -> tuple[int, Update | None]:
        try:
            return int(raw["update_id"]), Update.model_validate(raw, context={"bot": self._bot})
        except ValidationError:
            return int(raw["update_id"]), None

    async def stream_file(self, file_id: str) -> AsyncGenerator[bytes]:
        """Yield the content of a file.

        Raises:
            ChatGone: Telegram no longer has the file.
            ChatError: The file could not be downloaded.
        """
        file = await self.call(GetFile(file_id=file_id))
        if file.file_path is None:
            raise ChatGone("Telegram no longer has the file")
        with translate_errors(self._token):
            url = self._session.api.file_url(self._token, file.file_path)
            async with aclosing(self._session.stream_content(url, timeout=CALL_SECONDS)) as chunks:
                async for chunk in chunks:
                    yield chunk
