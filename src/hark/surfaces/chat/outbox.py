"""What goes to one address: nothing is lost, and nothing is said twice without a word about it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
from msgspec import structs

from hark.protocol.chat import Address, ChatError, ChatGone, ChatSurface, Outgoing
from hark.protocol.chat_ledger import ChatLedger
from hark.surfaces.chat.pieces import pieces

T = TypeVar("T")

AGAIN = "(This may have reached you before.)\n"
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of ours: the platform's id of it, "" when the chat is closed to us; new, or known from before."""

    id: str
    is_new: bool


class Outbox:
    """Sends to one address, one thing after the other; a platform that asks to wait holds this address alone."""

    def __init__(self, surface: ChatSurface, address: Address, ledger: ChatLedger) -> None:
        self._surface = surface
        self._address = address
        self._ledger = ledger
        self._lock = asyncio.Lock()
        self._sending: set[asyncio.Task[Posted]] = set()

    async def send(self, key: str, message: Outgoing) -> Posted:
        """Send a message once, ever, under this key.

        Cancelling ends the wait, not the sending: whoever asks again under the same key gets its answer.

        Raises:
            StoreError: The ledger can't be written, so nothing was sent.
        """
        sending = asyncio.create_task(self._send(key, message), name="sending")
        self._sending.add(sending)
        sending.add_done_callback(self._forget)
        return await asyncio.shield(sending)

    async def tell(self, key: str, text: str) -> None:
        """Say something that belongs to no turn, in as many messages as it takes."""
        for place, part in enumerate(pieces(text, self._surface.manners.characters)):
            await self.send(f"{key}:{place}" if place else key, Outgoing(part))

    async def close(self) -> None:
        """Give up what is under way: the next process goes on with it."""
        sending = list(self._sending)
        for task in sending:
            task.cancel()
        if sending:
            await asyncio.wait(sending)

    def _forget(self, task: "asyncio.Task[Posted]") -> None:
        self._sending.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits gets it; nobody has to

    async def _send(self, key: str, message: Outgoing) -> Posted:
        async with self._lock:
            known = await self._ledger.sending(self._address, key)
            if known is not None and known.id:
                return Posted(known.id, is_new=False)
            sent = await self._send_for_sure(structs.replace(message, key=key), is_doubtful=known is not None)
            if sent is not None:
                await self._ledger.sent(self._address, key, sent)
            return Posted(sent or "", is_new=True)

    async def _send_for_sure(self, message: Outgoing, *, is_doubtful: bool) -> str | None:
        """Send; where the answer to an earlier try is not known, say so, unless the platform knows our keys."""
        while True:
            is_told = is_doubtful and not self._surface.manners.knows_keys
            wanted = structs.replace(message, text=AGAIN + message.text) if is_told else message
            try:
                return await self._try(partial(self._surface.send, self._address, wanted))
            except OSError:  # the connection broke after it was sent, perhaps
                is_doubtful = True
                await anyio.sleep(FIRST_PAUSE_SECONDS)

    async def edit(self, message: str, new: Outgoing, *, is_last: bool) -> None:
        """Change a message of ours. One that is not the last may be skipped when the platform asks us to wait."""
        if not message:
            return
        async with self._lock:
            if is_last:
                await self._edit_for_sure(message, new)
                return
            try:
                await self._surface.edit(self._address, message, new)
            except ChatError as error:
                await anyio.sleep(min(error.retry_after or 0.0, LONGEST_PAUSE_SECONDS))
            except OSError:
                await anyio.sleep(FIRST_PAUSE_SECONDS)

    async def _edit_for_sure(self, message: str, new: Outgoing) -> None:
        """An edit may be made twice: nobody sees that."""
        while True:
            try:
                await self._try(partial(self._surface.edit, self._address, message, new))
            except OSError:
                await anyio.sleep(FIRST_PAUSE_SECONDS)
            else:
                return

    async def note(self, act: Callable[[], Awaitable[None]]) -> None:
        """Do something that may fail without harm: typing, a reaction."""
        try:
            await act()
        except (ChatError, OSError):
            return

    async def _try(self, act: Callable[[], Awaitable[T]]) -> T | None:
        """Do it, again and again while the platform can't; None when it never will."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await act()
            except ChatGone:
                return None
            except ChatError as error:
                await anyio.sleep(error.retry_after if error.retry_after is not None else pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
