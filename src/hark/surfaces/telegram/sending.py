"""Send messages to Telegram, with markup if Telegram accepts it, otherwise as plain text."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from aiogram.enums import ParseMode
from aiogram.methods import EditMessageText, SendChatAction, SendDocument, SendMessage, SendVoice, SetMessageReaction
from aiogram.types import (
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReactionTypeEmoji,
    ReplyParameters,
)

from hark.protocol.chat import Address, Button, ChatError, ChatGone, OutgoingMessage
from hark.surfaces.chat.markup_fallback import MarkupRefused, send_with_fallback
from hark.surfaces.chat.recent_values import ButtonValues
from hark.surfaces.chat.split_text import cut_position, text_length
from hark.surfaces.chat.streaming_reply import count_message
from hark.surfaces.telegram.client import ChatMigrated, RequestRefused, TelegramClient, UnansweredRequest
from hark.surfaces.telegram.limits import (
    MAX_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    MAX_ROW_BUTTONS,
    MAX_ROW_CHARACTERS,
    new_bot_limit,
    new_group_limit,
)
from hark.surfaces.telegram.markup import to_html, visible_length
from hark.timing.rate_limit import RateLimit, RateLimits

T = TypeVar("T")

TRUNCATED = "\n… (truncated: too long for Telegram)"
# Telegram has a fixed set of reactions. These are the closest ones to ours.
REACTIONS = {"↪": "✍", "⏳": "👌", "⏸": "😴", "🗑": "🕊"}
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
_TEXT_ERRORS = ("can't parse entities", "too long", "too_long", "is empty", "non-empty")
_OTHER_ERRORS = ("not modified", "not found", "can't be edited", "rights", "kicked", "deactivated", "closed")
LOG = logging.getLogger(__name__)


class TelegramWriter:
    """Sends and edits messages. If a group became a supergroup, uses its new id."""

    def __init__(self, client: TelegramClient, values: ButtonValues) -> None:
        self._client = client
        self._values = values
        self._migrated: dict[int, int] = {}
        self._limit = new_bot_limit()
        self._group_limits = RateLimits(new_group_limit)

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Send a message and return its id.

        Raises:
            ChatError: The message was not sent.
            UnansweredRequest: It is unknown whether the message was sent.
        """
        for limit in self._limits(address):
            limit.consume_token()
        if message.voice and not message.text:
            return await self._call_in_chat(address, lambda chat: self._send_voice(chat, address, message))
        sent_id = await self._call_in_chat(address, lambda chat: self._send_text(chat, address, message))
        if message.voice:
            try:
                await self._call_in_chat(address, lambda chat: self._send_voice(chat, address, message))
            except (ChatError, UnansweredRequest) as error:  # The text was sent and must not be sent again.
                LOG.warning("telegram: a spoken reply was not sent: %s", error)
        return sent_id

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Edit a message that the bot sent.

        Raises:
            ChatError: The message was not edited.
        """
        count_message(new, *self._limits(address))
        buttons = _make_keyboard(new.buttons, self._values)

        async def edit_in_chat(chat: int) -> None:
            async def attempt(text: str, mode: ParseMode | None) -> None:
                method = EditMessageText(
                    chat_id=chat,
                    message_id=_parse_id(message),
                    text=text,
                    parse_mode=mode,
                    link_preview_options=NO_PREVIEW,
                    reply_markup=buttons,
                )
                await self._client.call(method)

            await _try_formats(new.text, attempt)

        try:
            await self._call_in_chat(address, edit_in_chat)
        except RequestRefused as refusal:
            if "message is not modified" not in str(refusal):
                raise

    async def show_typing(self, address: Address) -> None:
        """Show the typing indicator.

        Raises:
            ChatError: The indicator can't be shown.
        """
        thread = _thread_id(address)
        await self._call_in_chat(
            address,
            lambda chat: self._client.call(SendChatAction(chat_id=chat, action="typing", message_thread_id=thread)),
        )

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Set the bot's reaction to a message; "" removes it.

        Raises:
            ChatError: The reaction can't be set.
        """
        reactions = [ReactionTypeEmoji(emoji=REACTIONS.get(reaction, reaction))] if reaction else []
        number = _parse_id(message)
        await self._call_in_chat(
            address,
            lambda chat: self._client.call(SetMessageReaction(chat_id=chat, message_id=number, reaction=[*reactions])),
        )

    async def _send_text(self, chat: int, address: Address, message: OutgoingMessage) -> str:
        buttons = _make_keyboard(message.buttons, self._values)

        async def attempt(text: str, mode: ParseMode | None) -> str:
            method = SendMessage(
                chat_id=chat,
                message_thread_id=_thread_id(address),
                text=text,
                parse_mode=mode,
                link_preview_options=NO_PREVIEW,
                reply_parameters=_reply_parameters(message),
                reply_markup=buttons,
            )
            return str((await self._client.call(method, is_repeatable=False)).message_id)

        return await _try_formats(message.text, attempt)

    async def _send_voice(self, chat: int, address: Address, message: OutgoingMessage) -> str:
        thread, reply = _thread_id(address), _reply_parameters(message)
        if message.voice.startswith(b"OggS"):
            file = BufferedInputFile(message.voice, "reply.ogg")
            method = SendVoice(chat_id=chat, message_thread_id=thread, voice=file, reply_parameters=reply)
        else:
            file = BufferedInputFile(message.voice, "reply.wav")
            method = SendDocument(chat_id=chat, message_thread_id=thread, document=file, reply_parameters=reply)
        return str((await self._client.call(method, is_repeatable=False)).message_id)

    def _limits(self, address: Address) -> list[RateLimit]:
        is_group = address.chat.startswith("-")
        return [self._limit, self._group_limits.get_limit(address.chat)] if is_group else [self._limit]

    async def _call_in_chat(self, address: Address, action: Callable[[int], Awaitable[T]]) -> T:
        chat = _parse_id(address.chat)
        chat = self._migrated.get(chat, chat)
        try:
            return await action(chat)
        except ChatMigrated as migration:
            self._migrated[chat] = migration.chat
            return await action(migration.chat)


async def _try_formats(text: str, attempt: Callable[[str, ParseMode | None], Awaitable[T]]) -> T:
    """Call `attempt` with the text as HTML, then as plain text, then truncated, until Telegram accepts the text."""
    plain = text if text.strip() else "…"

    def render_html() -> tuple[str, ParseMode] | None:
        html = to_html(text)
        return (html, ParseMode.HTML) if 0 < visible_length(html) <= MAX_CHARACTERS else None

    async def send(form: tuple[str, ParseMode | None]) -> T:
        try:
            return await attempt(*form)
        except RequestRefused as refusal:
            if not _is_text_error(str(refusal).lower(), form[1]):
                raise
            raise MarkupRefused(str(refusal)) from refusal

    return await send_with_fallback([render_html, lambda: (plain, None), lambda: (_truncate(plain), None)], send)


def _is_text_error(reason: str, mode: ParseMode | None) -> bool:
    """Return whether the text or its markup may be the reason for a refusal. Telegram's wording varies."""
    if mode is not None:
        return not any(phrase in reason for phrase in _OTHER_ERRORS)
    return any(phrase in reason for phrase in _TEXT_ERRORS)


def _truncate(text: str) -> str:
    if text_length(text) <= MAX_CHARACTERS:
        return text
    return text[: cut_position(text, MAX_CHARACTERS - text_length(TRUNCATED))] + TRUNCATED


def _reply_parameters(message: OutgoingMessage) -> ReplyParameters | None:
    if not message.reply_to:
        return None
    return ReplyParameters(message_id=_parse_id(message.reply_to), allow_sending_without_reply=True)


def _thread_id(address: Address) -> int | None:
    return _parse_id(address.thread) if address.thread else None


def _parse_id(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ChatGone(f"Telegram has no chat or message {text!r}.") from None


def _make_keyboard(buttons: Sequence[Button], values: ButtonValues) -> InlineKeyboardMarkup | None:
    """Return the buttons in rows that fit on a phone screen, or None if there are no buttons."""
    if not buttons:
        return None
    rows: list[list[InlineKeyboardButton]] = []
    row_characters = MAX_ROW_CHARACTERS
    for button in buttons:
        text = (
            button.text if len(button.text) <= MAX_LABEL_CHARACTERS else button.text[: MAX_LABEL_CHARACTERS - 1] + "…"
        )
        row_characters += len(text)
        if row_characters > MAX_ROW_CHARACTERS or len(rows[-1]) == MAX_ROW_BUTTONS:
            rows.append([])
            row_characters = len(text)
        rows[-1].append(InlineKeyboardButton(text=text or "·", callback_data=values.shorten(button.value)))
    return InlineKeyboardMarkup(inline_keyboard=rows)
