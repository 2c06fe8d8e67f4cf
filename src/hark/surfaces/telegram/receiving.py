"""Receive Telegram updates. Each is confirmed only after its delivery; a slow download delays only its own chat."""

import asyncio
import logging
import time
from functools import partial

import anyio
from aiogram.methods import AnswerCallbackQuery
from aiogram.types import CallbackQuery, Message, Update, User

from hark.protocol.chat import ButtonPressed, ChatError, Deliver, IncomingEvent, IncomingMessage, MessageEdited
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import describe_failed_download, download
from hark.surfaces.chat.recent_values import ButtonValues, RecentValues
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.telegram.client import TelegramClient
from hark.surfaces.telegram.incoming import (
    UpdateReader,
    address_of,
    author_of,
    describe_content,
    find_file,
    is_from_user,
    quoted_text,
    replied_id,
)
from hark.surfaces.telegram.platform import TelegramSettings

BUSY_POLL_SECONDS = 0.25  # the poll interval while deliveries are in progress
MAX_DOWNLOADS = 4  # at the same time
SHUTDOWN_SECONDS = 0.5
MAX_CLOCK_SKEW_SECONDS = 10.0  # between our clock and Telegram's
BUTTON_EXPIRED = "This button has expired."
LOG = logging.getLogger(__name__)


class UpdateReceiver:
    """Receives the updates for one bot.

    Telegram returns all updates with a number of at least the offset and deletes earlier updates. So the offset is
    always the number of the first undelivered update.
    """

    def __init__(self, client: TelegramClient, bot: User, settings: TelegramSettings, values: ButtonValues) -> None:
        self._client = client
        self._settings = settings
        self._values = values
        self._reader = UpdateReader(bot)
        self._downloads = asyncio.Semaphore(MAX_DOWNLOADS)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._last_delivery: dict[int, asyncio.Task[None]] = {}  # the newest delivery task of each chat
        self._answers: set[asyncio.Task[None]] = set()
        self._next_number = 0
        self._started_at = time.time()
        self._addressed: RecentValues[bool] = RecentValues()  # messages that were addressed to the bot
        self._started: set[int] = set()  # Updates after the first undelivered one: Telegram returns them again.

    async def run(self, deliver: Deliver) -> None:
        """Receive updates until cancelled.

        Raises:
            ChatError: Telegram can't be reached, or refused the request.
        """
        try:
            while True:
                updates = await self._poll()
                self._reader.remember_albums(update for _, update in updates)
                for number, update in updates:
                    self._start_delivery(number, update, deliver)
                await self._collect_deliveries()
        finally:
            tasks = [*self._running.values(), *self._answers]
            for task in tasks:
                task.cancel()
            with anyio.move_on_after(SHUTDOWN_SECONDS, shield=True):
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _poll(self) -> list[tuple[int, Update | None]]:
        offset = min(self._running, default=self._next_number)
        seconds = 0 if self._running else self._settings.poll_seconds
        return await retry_call(lambda: self._client.get_updates(offset, seconds))

    def _start_delivery(self, number: int, update: Update | None, deliver: Deliver) -> None:
        if number in self._started:
            return
        self._next_number = number + 1
        self._started.add(number)
        if update is None:
            LOG.warning("telegram: update %d could not be parsed and was skipped", number)
        elif update.callback_query is not None:
            self._running[number] = asyncio.create_task(self._handle_press(update.callback_query, deliver))
        elif (message := update.message or update.edited_message) is not None and self._is_accepted(message):
            is_edit = update.edited_message is not None and not self._is_newly_addressed(message)
            self._addressed.put(_message_key(message), True)
            previous = self._last_delivery.get(message.chat.id)
            task = asyncio.create_task(self._deliver_in_order(message, is_edit, previous, deliver))
            self._running[number] = self._last_delivery[message.chat.id] = task

    def _is_accepted(self, message: Message) -> bool:
        is_wanted = self._settings.listen == "all" or self._reader.is_addressed(message)
        return is_wanted and is_from_user(message)

    def _is_newly_addressed(self, message: Message) -> bool:
        """Return whether an edited message is from after startup and was not addressed to the bot before."""
        is_recent = message.date.timestamp() > self._started_at + MAX_CLOCK_SKEW_SECONDS
        return is_recent and not self._addressed.get(_message_key(message))

    async def _collect_deliveries(self) -> None:
        """Wait briefly for the deliveries in progress, so that new updates aren't delayed. Drop the finished ones."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=BUSY_POLL_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        for number in [number for number, task in self._running.items() if task.done()]:
            await self._running[number]  # An error ends receiving; Telegram sends the unconfirmed update again.
            del self._running[number]
        if not self._running:
            self._started.clear()
        self._last_delivery = {chat: task for chat, task in self._last_delivery.items() if not task.done()}

    async def _deliver_in_order(
        self, message: Message, is_edit: bool, previous: asyncio.Task[None] | None, deliver: Deliver
    ) -> None:
        incoming = self._read_edit(message) if is_edit else await self._read_message(message)
        if previous is not None:
            await asyncio.wait([previous])
            if previous.cancelled() or previous.exception() is not None:
                return  # Receiving ends now. Telegram sends the update again, in order.
        if incoming is not None:
            await deliver(incoming)

    def _read_edit(self, message: Message) -> IncomingEvent | None:
        text = self._reader.message_text(message)
        assert message.from_user is not None
        author = author_of(message.from_user)
        if not text:
            return None
        at = float(message.edit_date or 0)
        return MessageEdited(str(message.message_id), address_of(message), author, text, at)

    async def _read_message(self, message: Message) -> IncomingEvent | None:
        file = find_file(message)
        texts = [self._reader.message_text(message), describe_content(message)]
        attachment: Attachment | None = None
        if file is not None:
            content = partial(self._client.stream_file, file.id)
            try:
                async with self._downloads:
                    attachment = await download(content, file.name, file.media_type, file.size)
            except ChatError as error:
                texts.append(describe_failed_download(file.name, error))
        is_voice = file is not None and file.is_voice
        text = "\n".join(text for text in texts if text)
        if not text and attachment is None:
            return None  # A service message, such as a user joining: it has no content.
        assert message.from_user is not None
        return IncomingMessage(
            str(message.message_id),
            address_of(message),
            author_of(message.from_user),
            text,
            (attachment,) if attachment is not None and not is_voice else (),
            attachment if is_voice else None,
            self._reader.is_addressed(message),
            message.media_group_id or "",
            quoted_text(message),
            message.date.timestamp(),
            replied_id(message),
            message.chat.type == "private",
        )

    async def _handle_press(self, query: CallbackQuery, deliver: Deliver) -> None:
        """Deliver a button press ahead of pending messages, and clear the button's progress indicator."""
        value = self._values.restore(query.data or "")
        message = query.message if value and isinstance(query.message, Message) else None
        answer = asyncio.create_task(self._answer_query(query.id, "" if message else BUTTON_EXPIRED))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)
        if message is not None:
            await deliver(ButtonPressed(query.id, address_of(message), author_of(query.from_user), value))

    async def _answer_query(self, query_id: str, text: str) -> None:
        try:
            await self._client.call(AnswerCallbackQuery(callback_query_id=query_id, text=text or None))
        except ChatError as error:
            LOG.info("telegram: a button press was not answered: %s", error)


def _message_key(message: Message) -> str:
    return f"{message.chat.id}:{message.message_id}"
