"""Sends messages to one chat address without losing any. A message that may be a duplicate is marked as such."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeVar

import anyio
from msgspec import structs

from hark.protocol.chat import Address, ChatError, ChatGone, ChatSurface, OutgoingMessage
from hark.protocol.chat_ledger import ChatLedger
from hark.surfaces.chat.recent_values import RecentValues
from hark.surfaces.chat.retry import retry_call
from hark.surfaces.chat.split_text import split_text
from hark.text.cleanup import replace_surrogates
from hark.timing.backoff import Backoff

T = TypeVar("T")
Action = Callable[..., Awaitable[T]]
LOG = logging.getLogger(__name__)

DUPLICATE_MARK = "(This may have reached you before.)\n"
MAX_REMEMBERED_MARKS = 100  # Edits concern recent messages.
FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 60.0
MAX_FAILURES = 5  # of one message, for reasons that the platform doesn't report
UNSENDABLE = "(This part can't be displayed here because of an error. Hark's log has the details.)"


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A sent message. `id` is "" if the bot has no access to the chat. `is_new`: there was no earlier attempt."""

    id: str
    is_new: bool


class EditResult(Enum):
    """The result of an edit."""

    APPLIED = "made"
    DEFERRED = "later"  # the platform asks us to wait
    GONE = "gone"  # The message was deleted, or the bot has no access to it.


class Outbox:
    """Sends messages to one address in order. A platform rate limit delays only this address."""

    def __init__(self, surface: ChatSurface, address: Address, ledger: ChatLedger) -> None:
        self._surface = surface
        self._address = address
        self._ledger = ledger
        self._lock = asyncio.Lock()
        self._optional_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._edits_resume_at = 0.0
        self._marked: RecentValues[bool] = RecentValues(MAX_REMEMBERED_MARKS)

    @property
    def characters(self) -> int:
        """The maximum length of a message in UTF-16 code units, minus the space for the "possible duplicate" marker."""
        return self._surface.limits.characters - len(DUPLICATE_MARK)

    async def send(self, key: str, message: OutgoingMessage) -> PostedMessage:
        """Send a message exactly once for this key, even across restarts.

        Cancelling ends the wait, not the sending. Another call with the same key returns the same result.

        Raises:
            StoreError: The ledger can't be written, so nothing was sent.
        """
        return await asyncio.shield(self._start_task(self._send(key, message)))

    async def find_sent(self, key: str) -> str:
        """Return the id of the message sent under a key by this or an earlier process, or "" if there is none."""
        async with self._lock:  # The message may be in flight.
            known = await self._ledger.find_sent(self._address, key)
        return known.id if known is not None else ""

    async def send_text(self, key: str, text: str) -> None:
        """Send a text that does not belong to a turn, split into as many messages as needed."""
        for index, part in enumerate(split_text(text, self.characters)):
            await self.send(f"{key}:{index}" if index else key, OutgoingMessage(part))

    async def close(self) -> None:
        """Cancel the sends in progress. The next process resumes them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start_task(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work, name="sending")
        self._tasks.add(task)
        task.add_done_callback(self._discard_task)
        return task

    def _discard_task(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieve the exception, in case no caller awaits the task.

    async def _send(self, key: str, message: OutgoingMessage) -> PostedMessage:
        async with self._lock:
            known = await self._ledger.begin_send(self._address, key)
            if known is not None and known.id:
                return PostedMessage(known.id, is_new=False)
            is_doubtful = known is not None
            tried_at = known.at if known is not None else time.time()
            wanted = structs.replace(message, key=key, text=replace_surrogates(message.text))
            sent_id, is_marked = await self._send_until_accepted(wanted, tried_at, is_doubtful=is_doubtful)
            if sent_id is not None:
                if is_marked:  # The mark stays in the message, whichever process edits it.
                    await self._ledger.begin_send(self._address, f"again:{sent_id}")
                self._marked.put(sent_id, is_marked)
                await self._ledger.mark_sent(self._address, key, sent_id)
            # A platform that knows our key may return the message sent before a crash, which can have another text.
            return PostedMessage(sent_id or "", is_new=not is_doubtful)

    async def _send_until_accepted(
        self, message: OutgoingMessage, tried_at: float, *, is_doubtful: bool
    ) -> tuple[str | None, bool]:
        """Send a message until the platform accepts it. Return its platform id and whether it was marked.

        It gets the "possible duplicate" marker if an earlier attempt may have succeeded and the platform no longer
        recognizes the key. The id is None if the message was refused permanently.
        """

        async def send(message: OutgoingMessage, *, is_repeated: bool) -> tuple[str, bool]:
            limits = self._surface.limits
            is_recognized = limits.knows_keys and time.time() - tried_at < limits.key_seconds
            is_marked = (is_doubtful or is_repeated) and not is_recognized
            wanted = structs.replace(message, text=DUPLICATE_MARK + message.text) if is_marked else message
            return await self._surface.send(self._address, wanted), is_marked

        return await self._repeat_until_final(send, message) or (None, False)

    async def edit(self, message: str, new: OutgoingMessage, *, is_last: bool) -> EditResult:
        """Edit a sent message. Only a final edit (`is_last`) is retried until it is applied or permanently refused."""
        if not message:
            return EditResult.APPLIED
        async with self._lock:
            mark = DUPLICATE_MARK if await self._is_marked(message) else ""
            new = structs.replace(new, text=mark + replace_surrogates(new.text))
            if is_last:
                return await self._edit_until_accepted(message, new)
            try:
                await self._surface.edit(self._address, message, new)
            except ChatGone:
                return EditResult.GONE
            except (ChatError, OSError) as error:
                retry_after = error.retry_after if isinstance(error, ChatError) else None
                pause = min(FIRST_RETRY_SECONDS if retry_after is None else retry_after, MAX_RETRY_SECONDS)
                self._edits_resume_at = anyio.current_time() + pause
                return EditResult.DEFERRED
        return EditResult.APPLIED

    async def _is_marked(self, message: str) -> bool:
        """Return whether a sent message has the "possible duplicate" marker, which an edit must keep."""
        is_marked = self._marked.get(message)
        if is_marked is None:
            is_marked = await self._ledger.find_sent(self._address, f"again:{message}") is not None
            self._marked.put(message, is_marked)
        return is_marked

    @property
    def pause_seconds(self) -> float:
        """The number of seconds until the platform accepts non-final edits again."""
        return max(0.0, self._edits_resume_at - anyio.current_time())

    async def _edit_until_accepted(self, message_id: str, new: OutgoingMessage) -> EditResult:
        """Edit a message until the platform accepts it. Repeating an edit does no harm."""

        async def edit(message: OutgoingMessage, *, is_repeated: bool) -> EditResult:
            await self._surface.edit(self._address, message_id, message)
            return EditResult.APPLIED

        return await self._repeat_until_final(edit, new) or EditResult.GONE

    def start_optional(self, action: Callable[[], Awaitable[None]]) -> None:
        """Start an optional action in the background, such as a reaction. Actions run in order. Ignore failures."""

        async def run_in_order() -> None:
            async with self._optional_lock:
                await self.try_optional(action)

        self._start_task(run_in_order())

    async def try_optional(self, action: Callable[[], Awaitable[None]]) -> None:
        """Run an optional action, such as showing the typing indicator. Ignore its failure."""
        try:
            await action()
        except (ChatError, OSError):
            return

    async def _repeat_until_final(self, action: "Action[T]", message: OutgoingMessage) -> T | None:
        """Run an action, with retries while the platform is unavailable. Return None if it is permanently refused.

        A message that fails because of a bug is replaced with a note, then dropped, so that it can't block the chat.
        """
        is_repeated, failures = False, 0
        backoff = Backoff(FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS)
        while failures < MAX_FAILURES:
            attempt = partial(action, message, is_repeated=is_repeated)
            try:
                return await retry_call(attempt, Backoff(FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS), max_tries=None)
            except ChatGone:
                return None
            except OSError:  # The connection broke, perhaps after the message was sent.
                await anyio.sleep(FIRST_RETRY_SECONDS)
            except Exception:  # the surface loop: one message fails alone
                LOG.exception("%s: a message could not be sent", self._surface.name)
                failures += 1
                if failures == MAX_FAILURES - 1:
                    message = structs.replace(message, text=UNSENDABLE, buttons=(), voice=b"")
                await anyio.sleep(backoff.next_delay())
            is_repeated = True
        return None
