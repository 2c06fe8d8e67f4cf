"""What comes of a session, shown at one address: replies that grow, questions, receipts, notices."""

import asyncio

import anyio

from hark.protocol.chat import Button, Outgoing
from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallStart,
    Notice,
    QuestionAsked,
    QuestionClosed,
    ReceiptChanged,
    ReplyDelta,
    ReplyRestarted,
    StepStart,
    TurnEnd,
    TurnStart,
)
from hark.protocol.names import number_of
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import Receipt, ReceiptState
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.questions import GIVEN_CHARACTERS
from hark.surfaces.chat.reply import GrowingReply
from hark.surfaces.chat.spoken_reply import Spoken

TYPING_SECONDS = 4.0
QUESTION_ROOM = 2 * GIVEN_CHARACTERS + 40  # for the sign before it, and for how it ended
ANSWERED = "answered"
SILENT_NOTICES = ("retry", "silence", "compaction")
SIGNS = {
    ReceiptState.STARTED: "👀",
    ReceiptState.INTERRUPTING: "⚡",
    ReceiptState.STEERING: "↪",
    ReceiptState.STEERED: "↪",
    ReceiptState.QUEUED: "⏳",
    ReceiptState.HELD: "⏸",
    ReceiptState.WITHDRAWN: "🗑",
}


class ChatConversation:
    """Shows one session at one address, for as long as it is run."""

    def __init__(self, line: ChatRoute, spoken: Spoken) -> None:
        self._line = line
        self._ledger, self._outbox, self._questions = line.ledger, line.outbox, line.questions
        self._spoken = spoken
        self._reply: GrowingReply | None = None
        self._showing: asyncio.Task[None] | None = None
        self._owed = 0  # the last turn whose reply was delivered as owed, until another begins

    @property
    def is_at_rest(self) -> bool:
        """True when no turn runs, as far as is known here."""
        return self._reply is None

    async def run(self, delivered: int) -> None:
        """Show what comes of the session, until cancelled; first what is owed since turn number `delivered`."""
        session = self._line.session
        events = session.events()
        running = session.running()
        await session.opened()
        running = running or session.running()
        self._owed = last = await self._deliver_owed(delivered)
        # When the end of the turn before it is still being written, we hear of that first, and then of its start.
        if running and number_of(running.turn) == max(last, delivered) + 1:
            await self._begin(running.turn, is_late=True)
        try:
            async for event in events:
                await self._show(event)
        finally:
            with anyio.CancelScope(shield=True):  # all only wait, and hear the cancel
                await self._stop_showing()
                await self._spoken.close()
                await self._outbox.close()

    async def _deliver_owed(self, delivered: int) -> int:
        """Deliver the replies of the turns that ended behind this one; return the last one's number."""
        last = 0
        for turn, outcome in await self._line.session.ended_turns(delivered):
            await self._finish(GrowingReply(turn, self._line.surface.limits, self._outbox), outcome)
            last = number_of(turn)
        return last

    async def _show(self, event: AnyEvent) -> None:
        if isinstance(event, CallStart | CallEnd):  # an approval is durable with the start, any answer with the end
            self._questions.settle(event.call)
        elif isinstance(event, TurnEnd):
            self._questions.settle()
        match event:
            case TurnStart(turn=str(turn)) | TurnEnd(turn=str(turn)) if number_of(turn) <= self._owed:
                pass  # it ended before the owed replies were read, and was delivered with them
            case TurnStart():
                self._owed = 0
                self._spoken.begin(event.turn or "", event.messages)
                await self._begin(event.turn or "")
            case ReplyDelta(text=text) if self._reply is not None:
                self._reply.add(text)
                self._spoken.add(text)
            case ReplyRestarted() if self._reply is not None:
                self._reply.restart_step()
                self._spoken.restart_step()
            case StepStart() if self._reply is not None:
                self._reply.next_step()
            case CallStart(call=call, name=name) if self._reply is not None:
                self._reply.call_began(call, name)
            case CallEnd(call=call) if self._reply is not None:
                self._reply.call_ended(call)
            case QuestionAsked():
                await self._ask(event)
            case QuestionClosed(question=question, reason=reason):
                await self._close_question(question, reason)
            case ReceiptChanged(receipt=receipt):
                await self._sign(receipt)
            case Notice(text=text, code=code) if code not in SILENT_NOTICES:
                await self._outbox.tell(f"note:{self._line.session.new_id()}", text)
            case TurnEnd():
                await self._end(event)
            case _:
                pass

    async def _begin(self, turn: str, *, is_late: bool = False) -> None:
        """A turn runs. `is_late`: what it said before now was not heard here."""
        if self._reply is not None and self._reply.turn == turn:
            self._reply.is_late = False  # it was heard from its start after all
            return
        await self._stop_showing()
        self._reply = GrowingReply(turn, self._line.surface.limits, self._outbox, is_late=is_late)
        self._showing = asyncio.create_task(self._show_work(self._reply), name=f"reply {turn}")

    async def _show_work(self, reply: GrowingReply) -> None:
        """Show that we are at work, and what is said, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._type)
            if self._line.settings.streams:
                tasks.start_soon(reply.grow)

    async def _type(self) -> None:
        while True:
            await self._outbox.note(lambda: self._line.surface.typing(self._line.address))
            await anyio.sleep(TYPING_SECONDS)

    async def _end(self, event: TurnEnd) -> None:
        turn, reply = event.turn or "", self._reply
        if reply is None or reply.turn != turn:  # one whose start was not heard, before the one that is shown
            await self._finish(GrowingReply(turn, self._line.surface.limits, self._outbox), event.outcome)
            return
        await self._stop_showing()
        self._spoken.finish(await self._finish(reply, event.outcome), event.outcome)
        self._reply = None

    async def _finish(self, reply: GrowingReply, outcome: Outcome) -> str:
        """Show a reply as it ended; return all that was said in it."""
        text = await self._line.session.reply_of(reply.turn)
        await reply.finish(text, outcome)
        await self._ledger.delivered(self._line.address, number_of(reply.turn))
        return text

    async def _stop_showing(self) -> None:
        showing, self._showing = self._showing, None
        if showing is not None:
            showing.cancel()
            await asyncio.wait([showing])

    async def _ask(self, asked: QuestionAsked) -> None:
        buttons = tuple(
            Button(choice, f"answer:{asked.question}:{place}") for place, choice in enumerate(asked.choices)
        )
        self._questions.open(asked)
        posted = await self._outbox.send(f"ask:{asked.question}", Outgoing(self._question(asked.text), buttons))
        self._questions.posted(asked.question, posted.id)

    async def _close_question(self, question: str, reason: str) -> None:
        asked = self._questions.close(question)
        if asked is not None:
            end = f"{reason}: {asked.given}" if asked.given and reason == ANSWERED else reason
            await self._outbox.edit(
                asked.posted, Outgoing(f"{self._question(asked.event.text)}\n({end})"), is_last=True
            )

    def _question(self, text: str) -> str:
        """Return a question as one message: a long one is cut, as its buttons belong to one."""
        most = self._outbox.characters - QUESTION_ROOM
        return f"❓ {text}" if len(text) <= most else f"❓ {text[:most]}…"

    async def _sign(self, receipt: Receipt) -> None:
        message = self._line.message_of(receipt.id)
        sign = SIGNS.get(receipt.state)
        if not message or sign is None or self._line.settings.receipts == "off":
            return
        if self._line.settings.receipts == "reactions" and self._line.surface.limits.has_reactions:
            self._outbox.sign(lambda: self._line.surface.react(self._line.address, message, sign))
        elif receipt.state is not ReceiptState.STARTED:
            place = f" #{receipt.position}" if receipt.position else ""
            await self._outbox.tell(f"note:{self._line.session.new_id()}", f"{sign} {receipt.state}{place}")
