"""Our messages, as Telegram takes them: marked up where it can be, as plain text where not."""

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

from hark.protocol.chat import Address, Button, ChatError, ChatGone, Outgoing
from hark.surfaces.chat.recent_values import ButtonValues
from hark.surfaces.chat.reply import count_message
from hark.surfaces.telegram.client import ChatMigrated, RequestRefused, TelegramClient, Unanswered
from hark.surfaces.telegram.limits import (
    MOST_CHARACTERS,
    MOST_LETTERS,
    ROW_BUTTONS,
    ROW_LETTERS,
    bot_limit,
    group_limit,
)
from hark.surfaces.telegram.markup import as_html, shown_length, utf16_length
from hark.timing.rate_limit import RateLimit, RateLimits

T = TypeVar("T")

CUT = "\n… (cut: too long for Telegram)"
# Telegram has a fixed set of reactions; these are the nearest to ours.
SIGNS = {"↪": "✍", "⏳": "👌", "⏸": "😴", "🗑": "🕊"}
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
_OF_TEXT = ("can't parse entities", "too long", "too_long", "is empty")
_NOT_OF_TEXT = ("not modified", "not found", "can't be edited", "rights", "kicked", "deactivated", "closed")
LOG = logging.getLogger(__name__)


class Writer:
    """Sends and edits. A group that became a supergroup meanwhile is found under its new id."""

    def __init__(self, client: TelegramClient, values: ButtonValues) -> None:
        self._client = client
        self._values = values
        self._moved: dict[int, int] = {}
        self._limit = bot_limit()
        self._group_limits = RateLimits(group_limit)

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return its id.

        Raises:
            ChatError: It was not sent.
            Unanswered: It is not known whether it was.
        """
        for limit in self._limits(address):
            limit.count()
        if message.voice and not message.text:
            return await self._at(address, lambda chat: self._speak(chat, address, message))
        sent = await self._at(address, lambda chat: self._say(chat, address, message))
        if message.voice:
            try:
                await self._at(address, lambda chat: self._speak(chat, address, message))
            except (ChatError, Unanswered) as error:  # the words are there, and must not be sent again
                LOG.warning("telegram: a spoken reply was not sent: %s", error)
        return sent

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours.

        Raises:
            ChatError: It was not changed.
        """
        count_message(new, *self._limits(address))
        buttons = _keyboard(new.buttons, self._values)

        async def change(chat: int) -> None:
            async def try_one(text: str, mode: ParseMode | None) -> None:
                method = EditMessageText(
                    chat_id=chat,
                    message_id=_number(message),
                    text=text,
                    parse_mode=mode,
                    link_preview_options=NO_PREVIEW,
                    reply_markup=buttons,
                )
                await self._client.call(method)

            await _marked_up(new.text, try_one)

        try:
            await self._at(address, change)
        except RequestRefused as refused:
            if "message is not modified" not in str(refused):
                raise

    async def typing(self, address: Address) -> None:
        """Show that we are at work.

        Raises:
            ChatError: It can't be shown.
        """
        thread = _thread(address)
        await self._at(
            address,
            lambda chat: self._client.call(SendChatAction(chat_id=chat, action="typing", message_thread_id=thread)),
        )

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a message; "" takes ours away.

        Raises:
            ChatError: It can't be put there.
        """
        signs = [ReactionTypeEmoji(emoji=SIGNS.get(sign, sign))] if sign else []
        number = _number(message)
        await self._at(
            address,
            lambda chat: self._client.call(SetMessageReaction(chat_id=chat, message_id=number, reaction=[*signs])),
        )

    async def _say(self, chat: int, address: Address, message: Outgoing) -> str:
        buttons = _keyboard(message.buttons, self._values)

        async def try_one(text: str, mode: ParseMode | None) -> str:
            method = SendMessage(
                chat_id=chat,
                message_thread_id=_thread(address),
                text=text,
                parse_mode=mode,
                link_preview_options=NO_PREVIEW,
                reply_parameters=_reply(message),
                reply_markup=buttons,
            )
            return str((await self._client.call(method, is_repeatable=False)).message_id)

        return await _marked_up(message.text, try_one)

    async def _speak(self, chat: int, address: Address, message: Outgoing) -> str:
        thread, reply = _thread(address), _reply(message)
        if message.voice.startswith(b"OggS"):
            file = BufferedInputFile(message.voice, "reply.ogg")
            method = SendVoice(chat_id=chat, message_thread_id=thread, voice=file, reply_parameters=reply)
        else:
            file = BufferedInputFile(message.voice, "reply.wav")
            method = SendDocument(chat_id=chat, message_thread_id=thread, document=file, reply_parameters=reply)
        return str((await self._client.call(method, is_repeatable=False)).message_id)

    def _limits(self, address: Address) -> list[RateLimit]:
        is_group = address.chat.startswith("-")
        return [self._limit, self._group_limits.of(address.chat)] if is_group else [self._limit]

    async def _at(self, address: Address, act: Callable[[int], Awaitable[T]]) -> T:
        chat = _number(address.chat)
        chat = self._moved.get(chat, chat)
        try:
            return await act(chat)
        except ChatMigrated as moved:
            self._moved[chat] = moved.chat
            return await act(moved.chat)


async def _marked_up(text: str, try_one: Callable[[str, ParseMode | None], Awaitable[T]]) -> T:
    """Try a text with its markup; when that is refused, as it is; when it is still too long, without its end."""
    text = text.encode("utf-8", "replace").decode()  # half of a 😀 can't be sent
    html = as_html(text)
    plain = text if text.strip() else "…"
    tries: list[tuple[str, ParseMode | None]] = [(plain, None)]
    if 0 < shown_length(html) <= MOST_CHARACTERS:
        tries.insert(0, (html, ParseMode.HTML))
    for words, mode in tries:
        try:
            return await try_one(words, mode)
        except RequestRefused as refused:
            if not _may_be_of(str(refused).lower(), mode):
                raise
            LOG.info("telegram: the text was refused: %s", refused)
    return await try_one(_cut(plain), None)


def _may_be_of(reason: str, mode: ParseMode | None) -> bool:
    """Tell whether a refusal may be of the text, or its markup; Telegram has many words for those."""
    if mode is not None:
        return not any(words in reason for words in _NOT_OF_TEXT)
    return any(words in reason for words in _OF_TEXT)


def _cut(text: str) -> str:
    if utf16_length(text) <= MOST_CHARACTERS:
        return text
    room = 2 * (MOST_CHARACTERS - utf16_length(CUT))
    return text.encode("utf-16-le")[:room].decode("utf-16-le", "ignore") + CUT


def _reply(message: Outgoing) -> ReplyParameters | None:
    if not message.reply_to:
        return None
    return ReplyParameters(message_id=_number(message.reply_to), allow_sending_without_reply=True)


def _thread(address: Address) -> int | None:
    return _number(address.thread) if address.thread else None


def _number(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise ChatGone(f"Telegram has no chat or message {name!r}.") from None


def _keyboard(buttons: Sequence[Button], values: ButtonValues) -> InlineKeyboardMarkup | None:
    """Return the buttons in rows that fit on a phone."""
    if not buttons:
        return None
    rows: list[list[InlineKeyboardButton]] = []
    letters = ROW_LETTERS
    for button in buttons:
        text = button.text if len(button.text) <= MOST_LETTERS else button.text[: MOST_LETTERS - 1] + "…"
        letters += len(text)
        if letters > ROW_LETTERS or len(rows[-1]) == ROW_BUTTONS:
            rows.append([])
            letters = len(text)
        rows[-1].append(InlineKeyboardButton(text=text or "·", callback_data=values.shortened(button.value)))
    return InlineKeyboardMarkup(inline_keyboard=rows)
