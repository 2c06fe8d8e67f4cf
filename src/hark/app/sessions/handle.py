"""A session in a program's hand: the Python API of one conversation."""

import asyncio
from collections.abc import AsyncIterator
from typing import Unpack

from msgspec import structs

from hark.app.services import Services
from hark.app.sessions.unheard_reply import note_heard
from hark.app.slash.table import SlashCommand, brought, find
from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import Router
from hark.protocol.commands import Answer, Delivery, Edit, Interrupt, Move, QueueCommand, Say, Withdraw
from hark.protocol.events import AnyEvent
from hark.protocol.messages import Message
from hark.protocol.names import check_name
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.surface import Details


def told(receipt: Receipt) -> str:
    """Return in a word or two what became of a message."""
    place = f" #{receipt.position}" if receipt.state in (ReceiptState.QUEUED, ReceiptState.HELD) else ""
    return f"{receipt.state}{place}"


class SessionHandle:
    """One session. Every method may be called from any task of the loop; `interrupt_soon` from any thread."""

    def __init__(self, session: str, router: Router, bench: EngineServices, parts: Services, surface: str) -> None:
        self._id = check_name(session)
        self._router = router
        self.bench = bench
        self.parts = parts
        self._surface = surface
        self._loop = asyncio.get_running_loop()

    @property
    def id(self) -> str:
        """The session's name."""
        return self._id

    @property
    def door(self) -> SessionProxy:
        """Where its commands go in."""
        return self._router.door(self._id)

    @property
    def delivery(self) -> Delivery:
        """What a message does to a running turn, if it does not say so itself."""
        usual = self.parts.settings.delivery
        return self.parts.deliveries.get(self._id) or usual.surfaces.get(self._surface, usual.default)

    def choose_delivery(self, delivery: Delivery) -> None:
        """Have messages do this to a running turn, on every surface, as long as the program runs."""
        self.parts.deliveries[self._id] = delivery

    def children(self) -> "list[SessionHandle]":
        """Return the sessions that calls of this one started, as far as they are open here."""
        names = [door.id for door in self._router.doors if door.id.startswith(f"{self._id}.c-")]
        return [self.beside(name) for name in names]

    def beside(self, name: str) -> "SessionHandle":
        """Return another session of the same agent.

        Raises:
            ValueError: A session can't have that name.
        """
        return SessionHandle(name, self._router, self.bench, self.parts, "")

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        return self.bench.clock.new_id()

    async def opened(self) -> None:
        """Return when the session is loaded, here or in the process that owns it: from then on no event is missed."""
        await self.door.known()

    @property
    def is_busy_here(self) -> bool:
        """True when this very process has work to do in the session."""
        return self.door.is_busy

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        """Accept a message, durably; return what became of it. `Details` tells what may be said about it.

        A message that is a slash command is that command; what comes of it is a notice.

        Raises:
            ValueError: There is no such delivery.
            StoreError: It was not accepted.
        """
        way = self.delivery if delivery is None else Delivery(delivery)
        stop = Interrupt(self.new_id(), "user") if details.get("is_stopped") else None
        name, shown = details.get("id") or self.new_id(), details.get("shown")
        command = find(text)
        meant = brought(*command) if command is not None else None
        if command is not None and meant is None:
            return await self._command(*command, name)
        if shown is not None:
            await note_heard(self.door, shown, self.new_id())
        said = Say(name, text, way, details.get("author", ""), tuple(details.get("attachments", ())), shown)
        if command is None or meant is None:
            return await self.door.say(said, stop)
        receipt = await self.door.say(structs.replace(said, text=command[1], delivery=meant), stop)
        if receipt.state is not ReceiptState.DUPLICATE:
            self.door.notice(command[0].name, told(receipt))
        return receipt

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        """End the running turn (with `turn`, only that one); return when it has settled, or None when nothing ran.

        `shown` is how many characters of the running reply the person had seen; the rest is not kept.
        """
        return await self.door.interrupt(Interrupt(self.new_id(), source, turn, shown))

    def interrupt_soon(self, source: str = "user") -> None:
        """Interrupt from any thread, without waiting."""
        asyncio.run_coroutine_threadsafe(self.interrupt(source), self._loop)

    def events(self) -> AsyncIterator[AnyEvent]:
        """Yield the events from this call on, until the session closes."""
        return self.door.subscribe()

    async def idle(self) -> Outcome | None:
        """Return the last turn's outcome when nothing runs and nothing may run."""
        return await self.door.idle()

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question of the running turn; return why not."""
        return await self.door.answer(Answer(self.new_id(), question, text))

    async def has_known(self, message: str) -> bool:
        """Tell whether a message of that id was ever accepted here. A session that sleeps is not woken for it."""
        entries = await self.bench.store.inbox.after(self._id, 0)
        return any(isinstance(entry.command, Say) and entry.command.id == message for entry in entries)

    async def transcript(self) -> list[Message]:
        """Return what the model would see."""
        door = self.door
        await door.known()
        return list(door.state.transcript.messages)

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        return await self.door.queue()

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a message that waits; return why not. `/queue TEXT` is this text here, too."""
        command = find(text)
        is_message = command is not None and brought(*command) is not None
        return await self._change(Edit(self.new_id(), message, command[1] if command and is_message else text))

    async def move(self, message: str, position: int) -> Refusal | None:
        """Put a message that waits at another position, from 1; return why not."""
        return await self._change(Move(self.new_id(), message, position))

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
        return await self._change(Withdraw(self.new_id(), message))

    async def _command(self, command: SlashCommand, words: str, name: str) -> Receipt:
        if not self.parts.taken.take(self._id, name):
            return Receipt(name, self._id, ReceiptState.DUPLICATE)
        self.door.notice(command.name, await command.run(self, words))
        return Receipt(name, self._id, ReceiptState.STARTED)

    async def _change(self, command: QueueCommand) -> Refusal | None:
        return await self.door.change(command)
