"""A session as an editor uses it, on the agent's own handle."""

from collections.abc import AsyncIterator, Awaitable
from typing import Unpack

from hark.app.sessions.handle import SessionHandle
from hark.app.slash.table import find
from hark.protocol.commands import ChooseMode, ChooseRoute, Delivery
from hark.protocol.editor import SessionStatus
from hark.protocol.events import AnyEvent
from hark.protocol.messages import Call, Message
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import Receipt, Refusal, Settled
from hark.protocol.rules import ApprovalMode
from hark.protocol.surface import Details


class OpenSession:
    """Adapts a handle to the port of editors."""

    def __init__(self, handle: SessionHandle) -> None:
        self._handle = handle

    @property
    def id(self) -> str:
        """The session's name."""
        return self._handle.id

    @property
    def folder(self) -> str:
        """Where it works."""
        return str(self._handle.bench.workspace)

    @property
    def delivery(self) -> Delivery:
        """What a prompt does to one that still runs."""
        return self._handle.delivery

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        return self._handle.new_id()

    async def say(self, text: str, delivery: Delivery | str | None = None, **details: Unpack[Details]) -> Receipt:
        """Accept a message; it is on its way from the first step on."""
        return await self._handle.say(text, delivery, **details)

    async def interrupt(self, source: str = "user", turn: str = "", shown: int | None = None) -> Settled | None:
        """End the running turn; return when it has settled."""
        return await self._handle.interrupt(source, turn, shown)

    async def answer(self, question: str, text: str) -> Refusal | None:
        """Answer a question; return why not."""
        return await self._handle.answer(question, text)

    def events(self) -> AsyncIterator[AnyEvent]:
        """Yield the events from this call on."""
        return self._handle.events()

    async def idle(self) -> Outcome | None:
        """Return when nothing runs and nothing may run."""
        return await self._handle.idle()

    async def withdraw(self, message: str) -> Refusal | None:
        """Take a message that waits out of the queue; return why not."""
        return await self._handle.withdraw(message)

    def command(self, text: str) -> Awaitable[str] | None:
        """Return a slash command to be awaited for what it says."""
        found = find(text)
        return found[0].run(self._handle, found[1]) if found else None

    def call(self, name: str) -> Call | None:
        """Return a call of the running turn's last reply."""
        turn = self._handle.door.state.turn
        return turn.calls.get(name) if turn else None

    async def transcript(self) -> list[Message]:
        """Return what was said."""
        return await self._handle.transcript()

    async def standing(self) -> SessionStatus:
        """Return how it stands."""
        await self._handle.opened()
        state, bench = self._handle.door.state, self._handle.bench
        names = tuple(bench.routes.names)
        route = state.chosen_route if state.chosen_route in names else names[0]
        return SessionStatus(state.title, state.mode or bench.rules.approvals.mode, route, names)

    async def choose_mode(self, mode: ApprovalMode) -> Refusal | None:
        """Ask more or less often from now on; return why not."""
        return await self._handle.door.change(ChooseMode(self.new_id(), mode))

    async def choose_route(self, route: str) -> Refusal | None:
        """Have a route serve first, from the next turn on; return why not."""
        return await self._handle.door.change(ChooseRoute(self.new_id(), route))
