"""What goes wrong with Telegram, in the words of the port, and never with the token that stands in its addresses."""

from collections.abc import Generator
from contextlib import contextmanager

import aiohttp
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

from hark.protocol.chat import ChatError, ChatGone

_NOT_BEGUN = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
BAD_TOKEN = "Telegram does not know this token. Get the right one from @BotFather."  # noqa: S105
CONFLICT = (
    "Telegram gives this bot's messages to somebody else: another program asks for them, or a webhook is set. "
    "End that program, or call deleteWebhook; or use a bot of its own here."
)


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
