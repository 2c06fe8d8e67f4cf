"""A session as HTTP uses it, on the agent's own handle."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Unpack

from anyio import to_thread

from hark.app.build import Agent
from hark.app.sessions.attachments import kept
from hark.app.sessions.export import as_rows
from hark.app.sessions.handle import SessionHandle
from hark.app.sessions.load_state import load_state
from hark.app.sessions.remote_session import Caller
from hark.app.slash.table import find
from hark.engine.session.state import SessionState
from hark.protocol.commands import ChooseRoute, Delivery, Say
from hark.protocol.events import AnyEvent
from hark.protocol.gateway import EventReader, Past, RunningTurn
from hark.protocol.messages import Attachment
from hark.protocol.receipts import QueueItem, Receipt, ReceiptState, Refusal, Settled
from hark.protocol.surface import Details
from hark.text.clean import clean

SURFACE = "api"
_NOT_WAITING = Refusal("not_waiting", "That message does not wait any more, or never did.")
_NOT_ASKED = Refusal("not_asked", "That question is not open any more.")


class AgentApiSession:
    """Adapts a handle. What nobody has open is read from the store, and stays closed."""

    def __init__(self, agent: Agent, name: str, is_draining: Callable[[], bool]) -> None:
        """Raises ValueError when a session can't have that name."""
        if not name.strip("."):
            raise ValueError(f"{name!r} can't name a session: it would be a folder")
        self._agent = agent
        self._is_draining = is_draining
        self._handle = agent.session(name, SURFACE)

    @property
    def id(self) -> str:
        """The session's name."""
        return self._handle.id

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        """Accept a message, durably. While the gateway drains, it is kept for after the restart."""
        details["id"] = name = details.get("id") or self._handle.new_id()
        if files := details.get("attachments"):
            files = details["attachments"] = await to_thread.run_sync(self._kept, name, files)
        if find(text) is not None:
            await self._handle.opened()  # so that its notice comes behind all that was told before
        elif self._is_draining():
            author = clean(details.get("author", ""))
            return await self._keep(Say(name, clean(text), self._way(delivery), author, tuple(files or ())))
        return await self._handle.say(text, delivery, **details)

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        """End the running turn; return when it has settled."""
        return await self._handle.interrupt(source, turn, shown) if await self._is_anywhere() else None

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question; return why not."""
        return await self._handle.answer(question, text) if await self._is_anywhere() else _NOT_ASKED

    async def queue(self) -> list[QueueItem]:
        """Return what waits, in running order."""
        if self._is_open and not self._is_draining():
            return await self._handle.queue()
        return await Caller(self.id, self._agent.bench.store).queue()

    async def edit(self, message: str, text: str) -> Refusal | None:
        """Change the text of a message that waits; return why not."""
        return await self._handle.edit(message, clean(text)) if await self._waits(message) else _NOT_WAITING

    async def move(self, message: str, position: int) -> Refusal | None:
        """Put a message that waits at another position; return why not."""
        return await self._handle.move(message, position) if await self._waits(message) else _NOT_WAITING

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
        return await self._handle.withdraw(message) if await self._waits(message) else _NOT_WAITING

    async def has_known(self, message: str) -> bool:
        """Tell whether a message of that id was ever accepted here."""
        return await self._handle.has_known(message)

    async def opened(self) -> None:
        """Return when the session is loaded."""
        await self._handle.opened()

    def running(self) -> RunningTurn | None:
        """Return what runs, if the session is open here."""
        door = self._handle.door if self._is_open else None
        turn = door.state.turn if door else None
        return RunningTurn(turn.id, turn.progress, tuple(door.asked)) if door and turn else None

    async def past(self) -> Past:
        """Return what was said. Files are told by name: their bytes are not for a transcript."""
        state = SessionState()
        if self._is_open:
            door = self._handle.door  # the same one after the wait: to ask for it again could open it anew
            await door.known()
            state = door.state
        if not state.length:  # nobody has it open, or it is just being closed
            state = await load_state(self._agent.bench.store.journal, self.id)
        return Past(
            [_told(row) for row in as_rows(state)], [turn for turn in state.cut if state.transcript.knows(turn)]
        )

    async def choose_route(self, route: str) -> Refusal | None:
        """Have a route serve first; return why not."""
        return await self._handle.door.change(ChooseRoute(self._handle.new_id(), route))

    def let_go(self) -> None:
        """Close it in this process as soon as nothing runs."""
        if self._is_open:
            self._handle.door.drain()

    def notice(self, code: str, text: str) -> None:
        """Tell whoever reads along."""
        self._handle.door.notice(code, text)

    def reader(self) -> EventReader:
        """Return a reader of the events from this call on."""
        return self._handle.door.subscribe()

    def events(self) -> AsyncIterator[AnyEvent]:
        """Yield the events from this call on."""
        return self._handle.events()

    @property
    def handle(self) -> SessionHandle:
        """The session itself."""
        return self._handle

    @property
    def _is_open(self) -> bool:
        return self._agent.is_open(self.id)

    async def _is_anywhere(self) -> bool:
        """Tell whether a process has the session open: in no other can anything run."""
        return self._is_open or await self._agent.bench.store.leases.is_owned(self.id)

    async def _waits(self, message: str) -> bool:
        return self._is_open or any(item.id == message for item in await self.queue())

    def _way(self, delivery: Delivery | str | None) -> Delivery:
        return self._handle.delivery if delivery is None else Delivery(delivery)

    def _kept(self, message: str, attachments: Sequence[Attachment]) -> list[Attachment]:
        return [kept(self._agent.home, self.id, message, attachment) for attachment in attachments]

    async def _keep(self, say: Say) -> Receipt:
        accepted = await self._agent.bench.store.inbox.put(self.id, say)
        state = ReceiptState.QUEUED if accepted.is_new else ReceiptState.DUPLICATE
        return Receipt(say.id, self.id, state)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    told = {key: value for key, value in row.items() if key not in ("attachments", "reasoning")}
    if "attachments" in row:
        told["attachments"] = [
            {key: value for key, value in file.items() if key in ("media_type", "name")} for file in row["attachments"]
        ]
    return told
