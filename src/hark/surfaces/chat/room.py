"""One address at work: what was kept for it is dealt with in order, and a stop goes before all that waits."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

import anyio

from hark.protocol.chat import Pressed, Written
from hark.protocol.chat_ledger import ChatLedger, Kept
from hark.protocol.chat_session import ChatSession
from hark.surfaces.chat.conversation import Conversation, Line
from hark.surfaces.chat.gathering import goes_on, joined, may_go_on

WINDOW_SECONDS = 0.8
SLEEP_SECONDS = 300.0
STOPPED = "Stopped before I got to it: "

Hear = Callable[[Written, Callable[[str], Awaitable[None]]], Awaitable[Written]]


@dataclass(frozen=True, slots=True)
class House:
    """What all platforms share: the ledger, the sessions, how voice becomes text, and the words that stop.

    `hear` takes a message with a recording, and a way to tell its author something; it returns the message with its
    words. Cancelling it ends the hearing at once.
    """

    ledger: ChatLedger
    open_session: Callable[[str], ChatSession]
    hear: Hear
    stop_words: Collection[str]


class Room:
    """One address. It belongs to whoever runs it; `put` never waits."""

    def __init__(self, line: Line, house: House) -> None:
        self._line = line
        self._house = house
        self._conversation = Conversation(line, house.ledger)
        self._waiting: list[Kept] = []
        self._changed = asyncio.Event()
        self._stops: asyncio.Queue[Kept] = asyncio.Queue()
        self._hearing: asyncio.Task[Written] | None = None

    def put(self, kept: Kept) -> None:
        """Take something to be dealt with. A stop is dealt with at once, and nothing said before it runs."""
        if self._is_stop(kept):
            self._stops.put_nowait(kept)
            if self._hearing is not None:
                self._hearing.cancel()
        else:
            self._waiting.append(kept)
            self._changed.set()

    async def run(self) -> None:
        """Deal with what comes, and show what comes of it, until cancelled, or quiet for so long that it may sleep."""
        line = await self._house.ledger.line(self._line.address, self._line.session.id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._conversation.run, line.delivered)
            tasks.start_soon(self._deal_with_stops)
            while not await self._is_quiet():
                await self._deal_with(await self._next_batch())
            tasks.cancel_scope.cancel()

    async def _is_quiet(self) -> bool:
        """Return False when something is to be dealt with, True when for a long while there was nothing."""
        while not self._waiting:
            try:
                async with asyncio.timeout(SLEEP_SECONDS):
                    self._changed.clear()
                    await self._changed.wait()
            except TimeoutError:
                if self._conversation.is_at_rest and self._stops.empty():
                    return True
        return False

    def _is_stop(self, kept: Kept) -> bool:
        incoming = kept.incoming
        if isinstance(incoming, Pressed):
            return incoming.value.startswith("stop:")
        if not isinstance(incoming, Written) or incoming.attachments:
            return False
        return self._conversation.is_stop(incoming.text) or incoming.text.strip() == "/stop"

    async def _deal_with_stops(self) -> None:
        while True:
            stop = await self._stops.get()
            before = [kept for kept in self._waiting if kept.place < stop.place]
            self._waiting = [kept for kept in self._waiting if kept.place > stop.place]
            await self._conversation.take(stop.incoming)
            for kept in before:
                if isinstance(kept.incoming, Written):
                    await self._conversation.tell(STOPPED + (kept.incoming.text or "a recording"))
                await self._house.ledger.done(kept.place)
            await self._house.ledger.done(stop.place)

    async def _next_batch(self) -> list[Kept]:
        """Return the next thing, with what belongs to it: as long as more of the same may follow, it is waited for."""
        batch = [await self._next()]
        characters = self._line.surface.manners.characters
        while isinstance(last := batch[-1].incoming, Written) and may_go_on(last, characters):
            try:
                async with asyncio.timeout(WINDOW_SECONDS):
                    while not self._waiting:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                break
            following = self._waiting[0].incoming
            if not isinstance(following, Written) or not goes_on(last, following, characters):
                break
            batch.append(self._waiting.pop(0))
        return batch

    async def _next(self) -> Kept:
        while not self._waiting:
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.pop(0)

    async def _deal_with(self, batch: list[Kept]) -> None:
        first = batch[0].incoming
        if isinstance(first, Written):
            message = joined([kept.incoming for kept in batch if isinstance(kept.incoming, Written)])
            heard = await self._heard(message) if message.voice is not None else message
            if heard is not None:
                await self._conversation.take(heard)
        else:
            await self._conversation.take(first)
        for kept in batch:
            await self._house.ledger.done(kept.place)

    async def _heard(self, message: Written) -> Written | None:
        """Return a voice message with its words; None when a stop came meanwhile."""
        self._hearing = asyncio.ensure_future(self._house.hear(message, self._conversation.tell))
        try:
            await asyncio.wait([self._hearing])
            if self._hearing.cancelled():
                await self._conversation.tell(STOPPED + "a recording")
                return None
            return self._hearing.result()
        finally:
            self._hearing.cancel()
            self._hearing = None
