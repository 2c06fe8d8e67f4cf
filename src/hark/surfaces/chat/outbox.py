"""What goes to one address: nothing is lost, and nothing is said twice without a word about it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeVar

import anyio
from msgspec import structs

from hark.protocol.chat import Address, ChatError, ChatGone, ChatSurface, Outgoing
from hark.protocol.chat_ledger import ChatLedger
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.chat.retry import retried
from hark.surfaces.chat.split_text import pieces
from hark.timing.backoff import Backoff

T = TypeVar("T")

AGAIN = "(This may have reached you before.)\n"
MOST_TOLD = 100  # what is edited is among the last
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of ours: the platform's id of it, "" when the chat is closed to us; new, or known from before."""

    id: str
    is_new: bool


class EditResult(Enum):
    """What became of an edit."""

    MADE = "made"
    LATER = "later"  # the platform asks us to wait
    GONE = "gone"  # the message is not there any more, or closed to us


class Outbox:
    """Sends to one address, one thing after the other; a platform that asks to wait holds this address alone."""

    def __init__(self, surface: ChatSurface, address: Address, ledger: ChatLedger) -> None:
        self._surface = surface
        self._address = address
        self._ledger = ledger
        self._lock = asyncio.Lock()
        self._signing = asyncio.Lock()
        self._sending: set[asyncio.Task[Any]] = set()
        self._resumes_at = 0.0
        self._is_told: Recent[bool] = Recent(MOST_TOLD)

    @property
    def characters(self) -> int:
        """How long a message may be, with room for the word that it may have come before."""
        return self._surface.limits.characters - len(AGAIN)

    async def send(self, key: str, message: Outgoing) -> Posted:
        """Send a message once, ever, under this key.

        Cancelling ends the wait, not the sending: whoever asks again under the same key gets its answer.

        Raises:
            StoreError: The ledger can't be written, so nothing was sent.
        """
        return await asyncio.shield(self._begin(self._send(key, message)))

    async def sent_under(self, key: str) -> str:
        """Return the platform's id of what was sent under a key, by an earlier process too; "" for nothing."""
        async with self._lock:  # it may be on its way
            known = await self._ledger.find(self._address, key)
        return known.id if known is not None else ""

    async def tell(self, key: str, text: str) -> None:
        """Say something that belongs to no turn, in as many messages as it takes."""
        for place, part in enumerate(pieces(text, self.characters)):
            await self.send(f"{key}:{place}" if place else key, Outgoing(part))

    async def close(self) -> None:
        """Give up what is under way: the next process goes on with it."""
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        if sending:
            await asyncio.wait(sending)

    def _begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work, name="sending")
        self._sending.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._sending.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits gets it; nobody has to

    async def _send(self, key: str, message: Outgoing) -> Posted:
        async with self._lock:
            known = await self._ledger.sending(self._address, key)
            if known is not None and known.id:
                return Posted(known.id, is_new=False)
            is_doubtful = known is not None
            tried_at = known.at if known is not None else time.time()
            wanted = structs.replace(message, key=key)
            sent, is_told = await self._send_for_sure(wanted, tried_at, is_doubtful=is_doubtful)
            if sent is not None:
                if is_told:  # as long as it stands there, whoever edits it
                    await self._ledger.sending(self._address, f"again:{sent}")
                self._is_told.put(sent, is_told)
                await self._ledger.sent(self._address, key, sent)
            # What a platform finds by our key may be what was sent before a crash, with other words.
            return Posted(sent or "", is_new=not is_doubtful)

    async def _send_for_sure(self, message: Outgoing, tried_at: float, *, is_doubtful: bool) -> tuple[str | None, bool]:
        """Send; where the answer to an earlier try is not known, say so, unless the platform still knows our key.

        Return the platform's id, None when the chat is closed to us; and whether it was said.
        """
        while True:
            limits = self._surface.limits
            is_known = limits.knows_keys and time.time() - tried_at < limits.key_seconds
            is_told = is_doubtful and not is_known
            wanted = structs.replace(message, text=AGAIN + message.text) if is_told else message
            try:
                return await self._try(partial(self._surface.send, self._address, wanted)), is_told
            except OSError:  # the connection broke after it was sent, perhaps
                is_doubtful = True
                await anyio.sleep(FIRST_PAUSE_SECONDS)

    async def edit(self, message: str, new: Outgoing, *, is_last: bool) -> EditResult:
        """Change a message of ours. Only one that is the last is tried until it is made, or never will be."""
        if not message:
            return EditResult.MADE
        async with self._lock:
            if await self._was_told(message):
                new = structs.replace(new, text=AGAIN + new.text)
            if is_last:
                return await self._edit_for_sure(message, new)
            try:
                await self._surface.edit(self._address, message, new)
            except ChatGone:
                return EditResult.GONE
            except (ChatError, OSError) as error:
                asked = error.retry_after if isinstance(error, ChatError) else None
                pause = min(FIRST_PAUSE_SECONDS if asked is None else asked, LONGEST_PAUSE_SECONDS)
                self._resumes_at = anyio.current_time() + pause
                return EditResult.LATER
        return EditResult.MADE

    async def _was_told(self, message: str) -> bool:
        """Tell whether a message of ours says that it may have come before, which must stay there."""
        is_told = self._is_told.get(message)
        if is_told is None:
            is_told = await self._ledger.find(self._address, f"again:{message}") is not None
            self._is_told.put(message, is_told)
        return is_told

    @property
    def pause_seconds(self) -> float:
        """For how long the platform wants no more edits that can wait."""
        return max(0.0, self._resumes_at - anyio.current_time())

    async def _edit_for_sure(self, message: str, new: Outgoing) -> EditResult:
        """An edit may be made twice: nobody sees that."""

        async def edit() -> EditResult:
            await self._surface.edit(self._address, message, new)
            return EditResult.MADE

        while True:
            try:
                return await self._try(edit) or EditResult.GONE
            except OSError:
                await anyio.sleep(FIRST_PAUSE_SECONDS)

    def sign(self, act: Callable[[], Awaitable[None]]) -> None:
        """Do something that may fail without harm and for which nothing waits, in its order: a reaction."""

        async def sign() -> None:
            async with self._signing:
                await self.note(act)

        self._begin(sign())

    async def note(self, act: Callable[[], Awaitable[None]]) -> None:
        """Do something that may fail without harm, such as typing."""
        try:
            await act()
        except (ChatError, OSError):
            return

    async def _try(self, act: Callable[[], Awaitable[T]]) -> T | None:
        """Do it, again and again while the platform can't; None when it never will."""
        try:
            return await retried(act, Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), tries=None)
        except ChatGone:
            return None
