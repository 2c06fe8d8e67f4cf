"""One address at work: what was kept for it is dealt with in order, and a stop overtakes all that waits."""

import asyncio

import anyio
from msgspec import structs

from hark.protocol.chat import Pressed, Removed, Rewritten, Written
from hark.protocol.chat_ledger import PendingIncoming
from hark.protocol.meaning import StopMeaning
from hark.protocol.receipts import Receipt
from hark.protocol.speech import SpeechError
from hark.protocol.voice_messages import WITHDRAWN
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.conversation import ChatConversation
from hark.surfaces.chat.incoming import IncomingHandler
from hark.surfaces.chat.message_batch import goes_on, joined, may_go_on, whole
from hark.surfaces.chat.spoken_reply import Spoken
from hark.surfaces.chat.voice import ChatListener, Echo, note_of


class Chat:
    """One address. It belongs to whoever runs it, which can be done again when it has ended; `put` never waits.

    `waiting` is what was put here and not begun with.
    """

    def __init__(self, line: ChatRoute) -> None:
        self._line = line
        self._house = line.services
        self._inward = IncomingHandler(line)
        self._spoken = Spoken(self._house.narrator, line.session.id, line.outbox)
        self._conversation = ChatConversation(line, self._spoken)
        self.waiting: list[PendingIncoming] = []
        self._changes: list[PendingIncoming] = []  # edits and deletions that were not made yet
        self._under_way = 0
        self._is_begun = False
        self._changed = asyncio.Event()

    def put(self, kept: PendingIncoming) -> None:
        """Take something to be dealt with."""
        self.waiting.append(kept)
        if isinstance(kept.incoming, Rewritten | Removed):
            self._changes.append(kept)
        self._changed.set()

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
        self.waiting = [*kept, *(one for one in self.waiting if one.place not in places)]
        self._changes = [one for one in self.waiting if isinstance(one.incoming, Rewritten | Removed)]

    async def _is_quiet(self) -> bool:
        """Return False when something is to be dealt with, True when for a long while there was nothing."""
        while not self.waiting:
            try:
                async with asyncio.timeout(self._house.sleep_seconds):
                    self._changed.clear()
                    await self._changed.wait()
            except TimeoutError:
                if self._conversation.is_at_rest and not self._under_way and not self.waiting:
                    return True
        return False

    async def _next_batch(self) -> list[PendingIncoming]:
        """Return the next thing, with what belongs to it: as long as more of the same may follow, it is waited for."""
        batch = [self.waiting.pop(0)]
        characters = self._line.surface.limits.characters
        while isinstance(last := batch[-1].incoming, Written) and may_go_on(last, characters):
            try:
                async with asyncio.timeout(self._house.window_seconds):
                    while not self.waiting:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                if not self.waiting:  # a busy machine may be late with both
                    break
            following = self.waiting[0].incoming
            if not isinstance(following, Written) or not goes_on(last, following, characters):
                break  # a stop, too, ends the waiting
            batch.append(self.waiting.pop(0))
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
                self.waiting = [*batch[count:], *self.waiting]
                return []
        return batch

    async def _known(self, kept: PendingIncoming) -> PendingIncoming:
        """A recording whose words reached the session is heard again for its echo alone, and a stop is too late for it.

        Its words are a message there, or an answer. A recording that a stop withdrew is not heard at all.

        Anything else the session takes once anyway.
        """
        if not isinstance(kept.incoming, Written) or kept.incoming.voice is None:
            return kept
        name = self._name(kept)
        is_withdrawn = await self._line.ledger.find(self._line.address, f"withdrawn:{name}") is not None
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
        echo = Echo(self._line.outbox, f"voice:{message}")
        echo.show(WITHDRAWN)
        echo.close()
        await echo.run()

    async def _hear(self, kept: PendingIncoming, message: Written) -> bool:
        """Have a recording heard; False when that must be tried again by the next process."""
        echo = Echo(self._line.outbox, f"voice:{message.id}")
        self._spoken.heard(self._line.name_of(message.id))
        listener = ChatListener(kept, self._line, self._inward, echo)
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
