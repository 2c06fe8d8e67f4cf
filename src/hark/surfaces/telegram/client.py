"""The Bot API, as this surface uses it: calls with errors in our words, updates, files."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar, cast

import aiohttp
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import ClientDecodeError
from aiogram.methods import GetFile, GetMe, GetUpdates, TelegramMethod
from aiogram.types import Update, User
from aiogram.utils.token import TokenValidationError
from pydantic import ValidationError

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.telegram.errors import BAD_TOKEN, in_our_words

T = TypeVar("T")

CALL_SECONDS = 30
KINDS = ["message", "edited_message", "callback_query"]


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
