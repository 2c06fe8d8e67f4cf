"""One turn on behalf of a client that waits for it, and takes its wish back when it leaves."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio

from hark.protocol.events import AnyEvent, Notice, QuestionAsked, ReceiptChanged, ReplyDelta, TurnEnd, TurnStart
from hark.protocol.messages import Attachment
from hark.protocol.outcomes import Completed, Timings
from hark.protocol.receipts import ReceiptState
from hark.protocol.session import EventReader, Session
from hark.surfaces.web.api.errors import ApiError

GONE = "the client disconnected"
LEAVE_SECONDS = 5.0
NOBODY = "Nobody is there to ask: this came from a program. Go on without it, or say what you would need."


class CompletionTurn:
    """A message and the turn that takes it."""

    def __init__(self, session: Session, message: str, *, is_own_session: bool) -> None:
        """In a session of its own nobody else is there to answer questions."""
        self.turn = ""
        self._session = session
        self._message = message
        self._is_own_session = is_own_session
        self._is_over = False
        self._command = ""  # what was said is no message but this command, and has no turn
        self._events: EventReader = session.events()

    @asynccontextmanager
    async def said(self, text: str, author: str, attachments: Sequence[Attachment]) -> AsyncGenerator[None]:
        """Say it. Whoever leaves before the turn's end takes it back: the turn is interrupted, or never begins.

        Raises:
            ApiError: It was not taken.
        """
        try:
            receipt = await self._session.say(text, id=self._message, author=author, attachments=attachments)
            if receipt.state is ReceiptState.DUPLICATE:
                raise ApiError(409, "duplicate", "That message was said already.")
            if receipt.state is ReceiptState.STARTED and not receipt.turn:
                self._command = text[1:].split(None, 1)[0].lower()
            yield
        finally:
            if not self._is_over and not self._command:
                with anyio.move_on_after(LEAVE_SECONDS, shield=True):
                    await self._take_back()
            if self._is_own_session:
                self._session.let_go()

    async def events(self) -> AsyncGenerator[AnyEvent]:
        """Yield what belongs to the turn, its end last; nothing more when the session closes before.

        A command has no turn: the notice that comes of it is told as a reply.
        """
        async for event in self._events:
            if self._command:
                if isinstance(event, Notice) and event.code == self._command:
                    yield ReplyDelta(event.session, event.turn, event.seq, event.at, event.text)
                    yield TurnEnd(event.session, event.turn, event.seq, event.at, Completed(event.text), Timings())
                    return
                continue
            self._note(event)
            if self._is_over:
                return
            if not self.turn or event.turn != self.turn:
                continue
            if isinstance(event, QuestionAsked) and self._is_own_session:
                await self._session.answer(event.question, NOBODY)
            self._is_over = isinstance(event, TurnEnd)
            yield event
            if self._is_over:
                return

    def _note(self, event: AnyEvent) -> None:
        """Learn which turn took the message, or that none will."""
        if isinstance(event, TurnStart) and self._message in event.messages:
            self.turn = event.turn or ""
        elif isinstance(event, ReceiptChanged) and event.receipt.id == self._message:
            if event.receipt.state is ReceiptState.STEERED:
                self.turn = event.receipt.turn or ""
            self._is_over = event.receipt.state is ReceiptState.WITHDRAWN

    async def _take_back(self) -> None:
        """Withdraw the message while it waits; else end the turn that took it, and no other."""
        if not self.turn and await self._session.withdraw(self._message) is None:
            return
        while not self.turn and not self._is_over:  # it was taken a moment ago, or is still on its way in
            event = await anext(self._events, None)
            if event is None:
                return
            self._note(event)
            if isinstance(event, ReceiptChanged) and event.receipt.id == self._message and not self.turn:
                await self._session.withdraw(self._message)
        if self.turn:
            await self._session.interrupt(GONE, self.turn)
