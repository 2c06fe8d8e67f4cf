"""One turn for a client that waits for the reply. A disconnect withdraws the message or interrupts the turn."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio

from hark.protocol.events import AnyEvent, Notice, QuestionAsked, ReceiptChanged, ReplyDelta, TurnEnd, TurnStart
from hark.protocol.messages import Attachment
from hark.protocol.outcomes import Completed, Timings
from hark.protocol.receipts import ReceiptState
from hark.protocol.session import EventReader, Session
from hark.surfaces.web.api.errors import ApiError

CLIENT_DISCONNECTED = "the client disconnected"
DISCONNECT_CLEANUP_SECONDS = 5.0
NO_USER_ANSWER = (
    "No user is available: a program sent this request. Continue without an answer, or explain the problem."
)


class CompletionTurn:
    """A client's message and the turn that runs it."""

    def __init__(self, session: Session, message: str, *, is_own_session: bool) -> None:
        """Create the turn. If `is_own_session`, no user can answer, so questions are answered automatically."""
        self.turn = ""
        self._session = session
        self._message = message
        self._is_own_session = is_own_session
        self._is_over = False
        self._command = ""  # the slash command, if the message was one; a slash command has no turn
        self._events: EventReader = session.events()

    @asynccontextmanager
    async def submit(self, text: str, author: str, attachments: Sequence[Attachment]) -> AsyncGenerator[None]:
        """Send the message. Leaving the context early withdraws the message or interrupts its turn.

        Raises:
            ApiError: The message was not accepted.
        """
        try:
            receipt = await self._session.say(text, id=self._message, author=author, attachments=attachments)
            if receipt.state is ReceiptState.DUPLICATE:
                raise ApiError(409, "duplicate", "This message was already sent.")
            if receipt.state is ReceiptState.REFUSED:
                self._is_over = True
                raise ApiError(429, "queue_full", receipt.reason or "The queue is full.", {"Retry-After": "10"})
            if receipt.state is ReceiptState.STARTED and not receipt.turn:
                self._command = text[1:].split(None, 1)[0].lower()
            yield
        finally:
            if not self._is_over and not self._command:
                with anyio.move_on_after(DISCONNECT_CLEANUP_SECONDS, shield=True):
                    await self._withdraw_or_interrupt()
            if self._is_own_session:
                self._session.release()

    async def events(self) -> AsyncGenerator[AnyEvent]:
        """Yield the events of the turn, up to its end or until the session closes.

        A slash command has no turn: its notice is yielded as a reply.
        """
        async for event in self._events:
            if self._command:
                if isinstance(event, Notice) and event.code == self._command:
                    yield ReplyDelta(event.session, event.turn, event.seq, event.at, event.text)
                    yield TurnEnd(event.session, event.turn, event.seq, event.at, Completed(event.text), Timings())
                    return
                continue
            self._track_turn(event)
            if self._is_over:
                return
            if isinstance(event, QuestionAsked) and self._is_own_session:  # a child's question belongs to no turn
                await self._session.answer(event.question, NO_USER_ANSWER)
            if not self.turn or event.turn != self.turn:
                continue
            self._is_over = isinstance(event, TurnEnd)
            yield event
            if self._is_over:
                return

    def _track_turn(self, event: AnyEvent) -> None:
        """Record which turn runs the message, or that no turn will run it."""
        if isinstance(event, TurnStart) and self._message in event.messages:
            self.turn = event.turn or ""
        elif isinstance(event, ReceiptChanged) and event.receipt.id == self._message:
            if event.receipt.state is ReceiptState.STEERED:
                self.turn = event.receipt.turn or ""
            self._is_over = event.receipt.state is ReceiptState.WITHDRAWN

    async def _withdraw_or_interrupt(self) -> None:
        """Withdraw the message if it is still queued. Otherwise interrupt the turn that runs it, but no other turn."""
        if not self.turn and await self._session.withdraw(self._message) is None:
            return
        while not self.turn and not self._is_over:  # the turn has just started, or the message is not yet accepted
            event = await anext(self._events, None)
            if event is None:
                return
            self._track_turn(event)
            if isinstance(event, ReceiptChanged) and event.receipt.id == self._message and not self.turn:
                await self._session.withdraw(self._message)
        if self.turn:
            await self._session.interrupt(CLIENT_DISCONNECTED, self.turn)
