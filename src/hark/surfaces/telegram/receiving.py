"""Updates from Telegram: each is delivered, and only then confirmed; a slow file holds its own chat alone."""

import asyncio
import logging
import time
from functools import partial

import anyio
from aiogram.methods import AnswerCallbackQuery
from aiogram.types import CallbackQuery, Message, Update, User

from hark.protocol.chat import ChatError, Deliver, Incoming, Pressed, Rewritten, Written
from hark.protocol.messages import Attachment
from hark.surfaces.chat.download import download, not_downloaded
from hark.surfaces.chat.recent_values import ButtonValues, Recent
from hark.surfaces.chat.retry import retried
from hark.surfaces.telegram.client import TelegramClient
from hark.surfaces.telegram.incoming import (
    UpdateReader,
    address_of,
    author_of,
    described,
    enclosed,
    is_from_person,
    quoted_in,
)
from hark.surfaces.telegram.platform import TelegramSettings

LOOK_SECONDS = 0.25  # while something is not delivered yet, so often it is looked for more
DOWNLOADS = 4  # at once
END_SECONDS = 0.5
CLOCK_SECONDS = 10.0  # by which our clock and Telegram's may differ
TOO_OLD = "This button is too old."
LOG = logging.getLogger(__name__)


class Receiver:
    """Receives for one bot.

    Telegram hands out all updates from a number on, and forgets those before it. So the number that we name is that of
    the first one which is not delivered yet.
    """

    def __init__(self, client: TelegramClient, me: User, settings: TelegramSettings, values: ButtonValues) -> None:
        self._client = client
        self._settings = settings
        self._values = values
        self._ear = UpdateReader(me)
        self._downloads = asyncio.Semaphore(DOWNLOADS)
        self._open: dict[int, asyncio.Task[None]] = {}
        self._lanes: dict[int, asyncio.Task[None]] = {}  # the last delivery of each chat
        self._answers: set[asyncio.Task[None]] = set()
        self._next = 0
        self._began = time.time()
        self._heard: Recent[bool] = Recent()  # messages that were for us
        self._taken: set[int] = set()  # those behind the first that is not delivered: they are handed out again

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled.

        Raises:
            ChatError: Telegram can't be reached, or refuses us.
        """
        try:
            while True:
                updates = await self._poll()
                self._ear.note_albums(update for _, update in updates)
                for number, update in updates:
                    self._take(number, update, deliver)
                await self._settle()
        finally:
            tasks = [*self._open.values(), *self._answers]
            for task in tasks:
                task.cancel()
            with anyio.move_on_after(END_SECONDS, shield=True):
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _poll(self) -> list[tuple[int, Update | None]]:
        offset = min(self._open, default=self._next)
        seconds = 0 if self._open else self._settings.poll_seconds
        return await retried(lambda: self._client.updates(offset, seconds))

    def _take(self, number: int, update: Update | None, deliver: Deliver) -> None:
        if number in self._taken:
            return
        self._next = number + 1
        self._taken.add(number)
        if update is None:
            LOG.warning("telegram: update %d can't be read, and is passed over", number)
        elif update.callback_query is not None:
            self._open[number] = asyncio.create_task(self._press(update.callback_query, deliver))
        elif (message := update.message or update.edited_message) is not None and self._is_heard(message):
            is_edit = update.edited_message is not None and not self._is_news(message)
            self._heard.put(_place(message), True)
            before = self._lanes.get(message.chat.id)
            task = asyncio.create_task(self._pass_on(message, is_edit, before, deliver))
            self._open[number] = self._lanes[message.chat.id] = task

    def _is_heard(self, message: Message) -> bool:
        is_wanted = self._settings.listen == "all" or self._ear.is_for_us(message)
        return is_wanted and is_from_person(message)

    def _is_news(self, message: Message) -> bool:
        """Tell whether an edited message is heard for the first time: it was written while we listened, to others."""
        return message.date.timestamp() > self._began + CLOCK_SECONDS and not self._heard.get(_place(message))

    async def _settle(self) -> None:
        """Wait for what is being delivered, but not long: others may have written meanwhile."""
        if self._open:
            await asyncio.wait(self._open.values(), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        for number in [number for number, task in self._open.items() if task.done()]:
            await self._open[number]  # an error of delivering ends the receiving: it was not confirmed, and comes again
            del self._open[number]
        if not self._open:
            self._taken.clear()
        self._lanes = {chat: task for chat, task in self._lanes.items() if not task.done()}

    async def _pass_on(
        self, message: Message, is_edit: bool, before: asyncio.Task[None] | None, deliver: Deliver
    ) -> None:
        incoming = self._rewritten(message) if is_edit else await self._written(message)
        if before is not None:
            await asyncio.wait([before])
            if before.cancelled() or before.exception() is not None:
                return  # all ends now; it comes again, in its order
        if incoming is not None:
            await deliver(incoming)

    def _rewritten(self, message: Message) -> Incoming | None:
        text = self._ear.words(message)
        assert message.from_user is not None
        author = author_of(message.from_user)
        if not text:
            return None
        at = float(message.edit_date or 0)
        return Rewritten(str(message.message_id), address_of(message), author, text, at)

    async def _written(self, message: Message) -> Incoming | None:
        file = enclosed(message)
        texts = [self._ear.words(message), described(message)]
        found: Attachment | None = None
        if file is not None:
            content = partial(self._client.content, file.id)
            try:
                async with self._downloads:
                    found = await download(content, file.name, file.media_type, file.size)
            except ChatError as error:
                texts.append(not_downloaded(file.name, error))
        is_voice = file is not None and file.is_voice
        text = "\n".join(text for text in texts if text)
        if not text and found is None:
            return None  # somebody joined, a picture was pinned: nobody said anything
        assert message.from_user is not None
        return Written(
            str(message.message_id),
            address_of(message),
            author_of(message.from_user),
            text,
            (found,) if found is not None and not is_voice else (),
            found if is_voice else None,
            self._ear.is_for_us(message),
            message.media_group_id or "",
            quoted_in(message),
            message.date.timestamp(),
        )

    async def _press(self, query: CallbackQuery, deliver: Deliver) -> None:
        """Deliver a press, before all that waits, and take the sign of waiting off the button."""
        value = self._values.of(query.data or "")
        message = query.message if value and isinstance(query.message, Message) else None
        answer = asyncio.create_task(self._answer(query.id, "" if message else TOO_OLD))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)
        if message is not None:
            await deliver(Pressed(query.id, address_of(message), author_of(query.from_user), value))

    async def _answer(self, query: str, text: str) -> None:
        try:
            await self._client.call(AnswerCallbackQuery(callback_query_id=query, text=text or None))
        except ChatError as error:
            LOG.info("telegram: a button press was not answered: %s", error)


def _place(message: Message) -> str:
    return f"{message.chat.id}:{message.message_id}"
