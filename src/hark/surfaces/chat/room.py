"""One address at work: what was kept for it is dealt with in order, and a stop overtakes all that waits."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from hark.protocol.chat import Pressed, Removed, Written
from hark.protocol.chat_ledger import ChatLedger, Kept
from hark.protocol.chat_session import ChatSession
from hark.protocol.hearing import Ingress
from hark.protocol.receipts import Receipt
from hark.protocol.speech import Narrator, SpeechError
from hark.protocol.store import SessionLine
from hark.surfaces.chat.conversation import Conversation
from hark.surfaces.chat.gathering import goes_on, joined, may_go_on
from hark.surfaces.chat.inward import Inward
from hark.surfaces.chat.line import Line
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.questions import OpenQuestions
from hark.surfaces.chat.spoken import Spoken
from hark.surfaces.chat.voice import ChatListener, Echo, note_of

WINDOW_SECONDS = 0.8
SLEEP_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class House:
    """What all platforms share: ledger, sessions, the way in for voice, what is a wish to stop, and who speaks."""

    ledger: ChatLedger
    open_session: Callable[[str], ChatSession]
    sessions: Callable[[], Awaitable[list[SessionLine]]]
    ingress: Ingress
    is_stop: Callable[[str], bool]
    narrator: Narrator | None = None


class Room:
    """One address. It belongs to whoever runs it, which can be done again when it has ended; `put` never waits."""

    def __init__(self, line: Line, house: House) -> None:
        self._line = line
        self._house = house
        self._outbox = Outbox(line.surface, line.address, house.ledger)
        questions = OpenQuestions()
        self._inward = Inward(line, house.ledger, self._outbox, questions)
        self._spoken = Spoken(house.narrator, line.session.id, self._outbox)
        self._conversation = Conversation(line, house.ledger, self._outbox, questions, self._spoken)
        self._waiting: list[Kept] = []
        self._under_way = 0
        self._is_begun = False
        self._changed = asyncio.Event()

    def put(self, kept: Kept) -> None:
        """Take something to be dealt with."""
        self._waiting.append(kept)
        self._changed.set()

    @property
    def has_waiting(self) -> bool:
        """True when something was put here that nobody has begun with."""
        return bool(self._waiting)

    async def run(self) -> None:
        """Deal with what comes, and show what comes of it, until cancelled, or quiet for so long that it may sleep.

        Raises:
            StoreError: The ledger or the session can't be written; what was not dealt with is kept.
        """
        line = await self._house.ledger.line(self._line.address, self._line.session.id)
        if self._is_begun:
            await self._find_kept()
        self._is_begun, self._under_way = True, 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._conversation.run, line.delivered)
            while not await self._is_quiet():
                # Each gets its place in the line when its task takes its first step, and they do so in this order.
                batch = await self._next_batch()
                self._under_way += 1
                tasks.start_soon(self._deal_with, batch)
            tasks.cancel_scope.cancel()

    async def _find_kept(self) -> None:
        """Begin again with all that the ledger has for this address."""
        kept = await self._house.ledger.kept(self._line.address.surface, self._line.address)
        places = {one.place for one in kept}
        self._waiting = [*kept, *(one for one in self._waiting if one.place not in places)]

    async def _is_quiet(self) -> bool:
        """Return False when something is to be dealt with, True when for a long while there was nothing."""
        while not self._waiting:
            try:
                async with asyncio.timeout(SLEEP_SECONDS):
                    self._changed.clear()
                    await self._changed.wait()
            except TimeoutError:
                if self._conversation.is_at_rest and not self._under_way and not self._waiting:
                    return True
        return False

    async def _next_batch(self) -> list[Kept]:
        """Return the next thing, with what belongs to it: as long as more of the same may follow, it is waited for."""
        batch = [self._waiting.pop(0)]
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
                break  # a stop, too, ends the waiting
            batch.append(self._waiting.pop(0))
        return batch

    async def _deal_with(self, batch: list[Kept]) -> None:
        try:
            first = batch[0].incoming
            is_done = True
            if isinstance(first, Written) and first.voice is not None:
                is_done = await self._hear(batch[0], first)
            elif (turn := self._stopped_turn(batch[0])) is not None:
                await self._stop(batch[0], turn)
            else:
                await self._read(batch)
            for kept in batch if is_done else ():
                await self._house.ledger.done(kept.place)
        finally:
            self._under_way -= 1

    def _stopped_turn(self, kept: Kept) -> str | None:
        """Return the turn that something is a wish to stop, "" for whatever runs; None when it is no such wish."""
        incoming = kept.incoming
        if isinstance(incoming, Pressed):
            kind, _, turn = incoming.value.partition(":")
            return turn if kind == "stop" else None
        if not isinstance(incoming, Written) or incoming.attachments:
            return None
        is_stop = self._house.is_stop(incoming.text) or incoming.text.strip().lower() == "/stop"
        return "" if is_stop else None

    async def _stop(self, kept: Kept, turn: str) -> None:
        """Stop at once. What was said before, and has not reached the session yet, sets nothing off any more.

        A button names its turn: when that has ended, nothing else is meant.
        """
        source, session = ("button" if turn else "user"), self._line.session

        async def stop() -> None:
            await self._inward.stop(source, turn, kept.incoming.id)

        await (self._house.ingress.stop(session.id, stop) if turn in ("", session.running) else stop())

    async def _read(self, batch: list[Kept]) -> None:
        """Have the session take it, in its turn."""
        written = [kept.incoming for kept in batch if isinstance(kept.incoming, Written)]
        incoming = joined(written) if written else batch[0].incoming
        line = self._line.session.id
        if isinstance(incoming, Removed) and self._house.ingress.withdraw(line, self._line.name_of(incoming.id)):
            return

        async def take(is_stopped: bool) -> Receipt | None:
            return await self._inward.take(incoming, is_stopped=is_stopped, is_again=batch[0].is_again)

        await self._house.ingress.read(line, take)

    async def _hear(self, kept: Kept, message: Written) -> bool:
        """Have a recording heard; False when that must be tried again by the next process."""
        echo = Echo(self._outbox, f"voice:{message.id}")
        self._spoken.heard(self._line.name_of(message.id))
        listener = ChatListener(kept, self._inward, echo, self._house.is_stop)
        hearing = self._house.ingress.hear(note_of(self._line, message), listener)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(echo.run)
            try:
                await hearing.ended()
            except SpeechError:  # its author was told why
                return False
            finally:
                echo.close()
        return True
