"""One address at work: what was kept for it is dealt with in order, and a stop overtakes all that waits."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from msgspec import structs

from hark.protocol.chat import Pressed, Removed, Rewritten, Written
from hark.protocol.chat_ledger import ChatLedger, PendingIncoming
from hark.protocol.meaning import StopMeaning
from hark.protocol.receipts import Receipt
from hark.protocol.session import Session
from hark.protocol.speech import Narrator, SpeechError
from hark.protocol.store import SessionLine
from hark.protocol.voice_messages import WITHDRAWN, Ingress
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.conversation import ChatConversation
from hark.surfaces.chat.incoming import IncomingHandler
from hark.surfaces.chat.message_batch import goes_on, joined, may_go_on, whole
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.questions import OpenQuestions
from hark.surfaces.chat.spoken_reply import Spoken
from hark.surfaces.chat.voice import ChatListener, Echo, note_of


@dataclass(frozen=True, slots=True)
class ChatServices:
    """What all platforms share. `is_stop` tells whether a text stops what runs, on the surface of that name."""

    ledger: ChatLedger
    open_session: Callable[[str], Session]
    sessions: Callable[[], Awaitable[list[SessionLine]]]
    ingress: Ingress
    is_stop: Callable[[str, str], bool]
    narrator: Narrator | None = None
    first_pause_seconds: float = 1.0  # before a platform or a chat that failed is tried again
    window_seconds: float = 0.8  # for the next part of a message that the client split
    sleep_seconds: float = 300.0  # after which a quiet chat is closed


class Chat:
    """One address. It belongs to whoever runs it, which can be done again when it has ended; `put` never waits."""

    def __init__(self, line: ChatRoute, house: ChatServices) -> None:
        self._line = line
        self._house = house
        self._outbox = Outbox(line.surface, line.address, house.ledger)
        questions = OpenQuestions()
        self._inward = IncomingHandler(line, house.ledger, self._outbox, questions)
        self._spoken = Spoken(house.narrator, line.session.id, self._outbox)
        self._conversation = ChatConversation(line, house.ledger, self._outbox, questions, self._spoken)
        self._waiting: list[PendingIncoming] = []
        self._changes: list[PendingIncoming] = []  # edits and deletions that were not made yet
        self._under_way = 0
        self._is_begun = False
        self._changed = asyncio.Event()

    def put(self, kept: PendingIncoming) -> None:
        """Take something to be dealt with."""
        self._waiting.append(kept)
        if isinstance(kept.incoming, Rewritten | Removed):
            self._changes.append(kept)
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
                batch = await self._unsaid(await self._next_batch())
                if batch:
                    self._under_way += 1
                    tasks.start_soon(self._deal_with, batch)
            tasks.cancel_scope.cancel()

    async def _find_kept(self) -> None:
        """Begin again with all that the ledger has for this address."""
        kept = await self._house.ledger.kept(self._line.address.surface, self._line.address)
        places = {one.place for one in kept}
        self._waiting = [*kept, *(one for one in self._waiting if one.place not in places)]
        self._changes = [one for one in self._waiting if isinstance(one.incoming, Rewritten | Removed)]

    async def _is_quiet(self) -> bool:
        """Return False when something is to be dealt with, True when for a long while there was nothing."""
        while not self._waiting:
            try:
                async with asyncio.timeout(self._house.sleep_seconds):
                    self._changed.clear()
                    await self._changed.wait()
            except TimeoutError:
                if self._conversation.is_at_rest and not self._under_way and not self._waiting:
                    return True
        return False

    async def _next_batch(self) -> list[PendingIncoming]:
        """Return the next thing, with what belongs to it: as long as more of the same may follow, it is waited for."""
        batch = [self._waiting.pop(0)]
        characters = self._line.surface.manners.characters
        while isinstance(last := batch[-1].incoming, Written) and may_go_on(last, characters):
            try:
                async with asyncio.timeout(self._house.window_seconds):
                    while not self._waiting:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                if not self._waiting:  # a busy machine may be late with both
                    break
            following = self._waiting[0].incoming
            if not isinstance(following, Written) or not goes_on(last, following, characters):
                break  # a stop, too, ends the waiting
            batch.append(self._waiting.pop(0))
        return batch

    def _changes_of(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        """Return the edits and deletions that came for messages which the session does not have yet."""
        ids = {kept.incoming.id for kept in batch if isinstance(kept.incoming, Written)}
        return [change for change in self._changes if change.incoming.id in ids]

    def _deletions_of(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        return [change for change in self._changes_of(batch) if isinstance(change.incoming, Removed)]

    async def _unsaid(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        """Leave out what an earlier process had brought to the session, alone or with more; the rest comes anew."""
        parts = [kept.incoming for kept in batch if isinstance(kept.incoming, Written)]
        if not batch[0].is_again:
            return batch
        is_voice = bool(parts) and parts[0].voice is not None
        if len(batch) == 1 and (is_voice or not self._changes_of(batch)):
            return [await self._known(batch[0])]
        for count in range(len(parts), 0, -1):
            if await self._line.session.has_known(self._line.name_of(joined(parts[:count]).id)):
                await self._house.ledger.done(*(kept.place for kept in batch[:count]))
                self._waiting = [*batch[count:], *self._waiting]
                return []
        return batch

    async def _known(self, kept: PendingIncoming) -> PendingIncoming:
        """A recording whose words reached the session is heard again for its echo alone, and a stop is too late for it.

        Its words are a message there, or an answer. A recording that a stop withdrew is not heard at all.

        Anything else the session takes once anyway.
        """
        if not isinstance(kept.incoming, Written) or kept.incoming.voice is None:
            return kept
        is_withdrawn = await self._inward.was_withdrawn(kept.incoming)
        name = self._name(kept)
        is_said = await self._line.session.has_known(name) or await self._inward.was_answer(name)
        return structs.replace(kept, is_said=is_said, is_withdrawn=is_withdrawn and not is_said)

    async def _deal_with(self, batch: list[PendingIncoming]) -> None:
        try:
            first = batch[0].incoming
            done = batch
            is_unheard = isinstance(first, Written) and first.voice is not None and not batch[0].is_said
            if is_unheard and (gone := self._deletions_of(batch)):
                self._changes = [change for change in self._changes if change not in gone]
                done = [*batch, *gone]  # nobody need hear it
            elif batch[0].is_withdrawn:
                await self._tell_withdrawn(first.id)
            elif isinstance(first, Written) and first.voice is not None:
                done = batch if await self._hear(batch[0], first) else []
            elif (turn := self._stopped_turn(batch[0])) is not None:
                await self._stop(batch[0], turn)
            else:
                done = [*batch, *await self._read(batch)]
            if done:
                await self._inward.settled(first.id)
                await self._house.ledger.done(*(kept.place for kept in done))
        finally:
            self._under_way -= 1

    def _stopped_turn(self, kept: PendingIncoming) -> str | None:
        """Return the turn that something is a wish to stop, "" for whatever runs; None when it is no such wish."""
        incoming = kept.incoming
        if isinstance(incoming, Pressed):
            kind, _, turn = incoming.value.partition(":")
            return turn if kind == "stop" else None
        if not isinstance(incoming, Written) or incoming.attachments:
            return None
        return "" if isinstance(self._line.session.meaning(incoming.text.strip()), StopMeaning) else None

    async def _stop(self, kept: PendingIncoming, turn: str) -> None:
        """Stop at once. What was said before, and has not reached the session yet, sets nothing off any more.

        A button names its turn: when that has ended, nothing else is meant.
        """
        source, session = ("button" if turn else "user"), self._line.session

        async def stop() -> None:
            await self._inward.stop(source, turn, kept.incoming.id)

        running = session.running()
        is_meant = turn in ("", running.turn if running else "")
        await (self._house.ingress.stop(session.id, stop) if is_meant else stop())

    async def _read(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        """Have the session take it, in its turn; return the changes that came meanwhile, and were made at once."""
        line, first = self._line.session.id, batch[0]
        if isinstance(first.incoming, Removed) and self._house.ingress.withdraw(line, self._name(first)):
            self._changes.remove(first)
            return []
        made: list[PendingIncoming] = []

        async def take(is_stopped: bool) -> Receipt | None:
            if isinstance(first.incoming, Rewritten | Removed):
                if first not in self._changes:
                    return None  # made with its message
                self._changes.remove(first)
            made.extend(self._changes_of(batch))
            self._changes = [change for change in self._changes if change not in made]
            incoming = whole([kept.incoming for kept in (*batch, *made)])
            if incoming is None:
                return None
            self._inward.joined.note([kept.incoming for kept in batch])
            return await self._inward.take(incoming, is_stopped=is_stopped, is_again=first.is_again)

        await self._house.ingress.read(line, take)
        return made

    def _name(self, kept: PendingIncoming) -> str:
        return self._line.name_of(kept.incoming.id)

    async def _tell_withdrawn(self, message: str) -> None:
        echo = Echo(self._outbox, f"voice:{message}")
        echo.show(WITHDRAWN)
        echo.close()
        await echo.run()

    async def _hear(self, kept: PendingIncoming, message: Written) -> bool:
        """Have a recording heard; False when that must be tried again by the next process."""
        echo = Echo(self._outbox, f"voice:{message.id}")
        self._spoken.heard(self._line.name_of(message.id))
        listener = ChatListener(kept, self._inward, echo, self._line.session)
        hearing = self._house.ingress.hear(note_of(self._line, kept), listener)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(echo.run)
            try:
                await hearing.ended()
            except SpeechError:  # its author was told why
                return False
            finally:
                echo.close()
        return True
