"""Shows a session's events at one chat address: streamed replies, questions, receipts and notices."""

import asyncio
from dataclasses import replace

import anyio
import msgspec

from hark.protocol.chat import Button, OutgoingMessage
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
from hark.protocol.names import turn_number
from hark.protocol.outcomes import Outcome
from hark.protocol.receipts import Receipt, ReceiptState
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.questions import MAX_REMARK_CHARACTERS, QUESTION_KEY, ShownQuestion
from hark.surfaces.chat.split_text import cut_position
from hark.surfaces.chat.spoken_reply import SpokenReplies
from hark.surfaces.chat.streaming_reply import StreamingReply

TYPING_SECONDS = 4.0
QUESTION_RESERVED_CHARACTERS = 2 * MAX_REMARK_CHARACTERS + 40  # for the marker before the question and its outcome
ANSWERED = "answered"
OPEN_QUESTION = "question"  # the key under which the newest open question is stored
RESTARTED = "withdrawn: Hark restarted"
SILENT_NOTICES = ("retry", "silence", "compaction")
RECEIPT_REACTIONS = {
    ReceiptState.STARTED: "👀",
    ReceiptState.INTERRUPTING: "⚡",
    ReceiptState.STEERING: "↪",
    ReceiptState.STEERED: "↪",
    ReceiptState.QUEUED: "⏳",
    ReceiptState.HELD: "⏸",
    ReceiptState.WITHDRAWN: "🗑",
}


class ChatConversation:
    """Shows the events of one session at one chat address while `run` is running."""

    def __init__(self, route: ChatRoute, spoken_replies: SpokenReplies) -> None:
        self._route = route
        self._ledger, self._outbox, self._questions = route.ledger, route.outbox, route.questions
        self._spoken_replies = spoken_replies
        self._reply: StreamingReply | None = None
        self._progress: asyncio.Task[None] | None = None
        self._last_missed_turn = 0  # the last turn that was delivered as missed; 0 once a newer turn begins

    @property
    def is_idle(self) -> bool:
        """Whether no turn is known to be running and no question is open."""
        return self._reply is None and not self._questions.open_ids

    async def run(self, delivered: int) -> None:
        """Deliver the replies missed since turn number `delivered`, then show the session's events until cancelled."""
        session = self._route.session
        events = session.events()
        running = session.running_turn()
        await session.wait_until_loaded()
        running = running or session.running_turn()
        await self._close_lost_question()
        self._last_missed_turn = last = await self._deliver_missed_replies(delivered)
        # If the end of the previous turn is still being written, its event arrives first, then this turn's start.
        if running and turn_number(running.turn) == max(last, delivered) + 1:
            await self._begin_turn(running.turn, has_missed_start=True)
        try:
            async for event in events:
                await self._handle_event(event)
        finally:
            with anyio.CancelScope(shield=True):  # These only wait for tasks that react to the cancellation.
                await self._stop_progress()
                await self._spoken_replies.close()
                await self._outbox.close()

    async def _deliver_missed_replies(self, delivered: int) -> int:
        """Deliver the replies of turns that ended after turn number `delivered`. Return the last turn number, or 0."""
        last = 0
        for turn, outcome in await self._route.session.ended_turns(delivered):
            await self._finish_reply(StreamingReply(turn, self._route.surface.limits, self._outbox), outcome)
            last = turn_number(turn)
        return last

    async def _handle_event(self, event: AnyEvent) -> None:
        if isinstance(event, CallStart | CallEnd):  # approvals are durable at the start, other answers at the end
            self._questions.mark_durable(event.call)
        elif isinstance(event, TurnEnd):
            self._questions.mark_durable()
        match event:
            case TurnStart(turn=str(turn)) | TurnEnd(turn=str(turn)) if turn_number(turn) <= self._last_missed_turn:
                pass  # The turn ended before the missed replies were read, so its reply was delivered with them.
            case TurnStart():
                self._last_missed_turn = 0
                self._spoken_replies.begin_turn(event.turn or "", event.messages)
                await self._begin_turn(event.turn or "")
            case ReplyDelta(text=text) if self._reply is not None:
                self._reply.add(text)
                self._spoken_replies.add(text)
            case ReplyRestarted() if self._reply is not None:
                self._reply.restart_step()
                self._spoken_replies.restart_step()
            case StepStart() if self._reply is not None:
                self._reply.next_step()
            case CallStart(call=call, name=name) if self._reply is not None:
                self._reply.add_call(call, name)
            case CallEnd(call=call) if self._reply is not None:
                self._reply.remove_call(call)
            case QuestionAsked():
                await self._post_question(event)
            case QuestionClosed(question=question, reason=reason):
                await self._close_question(question, reason)
            case ReceiptChanged(receipt=receipt):
                await self._show_receipt(receipt)
            case Notice(text=text, code=code) if code not in SILENT_NOTICES:
                await self._outbox.send_text(f"note:{self._route.session.new_id()}", text)
            case TurnEnd():
                self._questions.end_turn()
                await self._end_turn(event)
            case _:
                pass

    async def _begin_turn(self, turn: str, *, has_missed_start: bool = False) -> None:
        """Start to show a running turn. `has_missed_start`: the turn's earlier text was not received here."""
        if self._reply is not None and self._reply.turn == turn:
            self._reply.has_missed_start = False  # The events did begin with the turn's start.
            return
        await self._stop_progress()
        self._reply = StreamingReply(turn, self._route.surface.limits, self._outbox, has_missed_start=has_missed_start)
        self._progress = asyncio.create_task(self._show_progress(self._reply), name=f"reply {turn}")

    async def _show_progress(self, reply: StreamingReply) -> None:
        """Show the typing indicator and the growing reply until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._repeat_typing)
            if self._route.settings.streams:
                tasks.start_soon(reply.stream)

    async def _repeat_typing(self) -> None:
        while True:
            await self._outbox.try_optional(lambda: self._route.surface.show_typing(self._route.address))
            await anyio.sleep(TYPING_SECONDS)

    async def _end_turn(self, event: TurnEnd) -> None:
        turn, reply = event.turn or "", self._reply
        if reply is None or reply.turn != turn:  # The start of this turn was not received; another turn is shown now.
            await self._finish_reply(StreamingReply(turn, self._route.surface.limits, self._outbox), event.outcome)
            return
        await self._stop_progress()
        self._spoken_replies.finish_turn(await self._finish_reply(reply, event.outcome), event.outcome)
        self._reply = None

    async def _finish_reply(self, reply: StreamingReply, outcome: Outcome) -> str:
        """Show the final reply and return its full text."""
        text = await self._route.session.reply_of(reply.turn)
        await reply.finish(text, outcome)
        await self._ledger.mark_delivered(self._route.address, turn_number(reply.turn))
        return text

    async def _stop_progress(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.cancel()
            await asyncio.wait([progress])

    async def _post_question(self, asked: QuestionAsked) -> None:
        buttons = tuple(
            Button(choice, f"answer:{asked.question}:{position}") for position, choice in enumerate(asked.choices)
        )
        self._questions.add(asked)
        await self._store_open_question()
        posted = await self._outbox.send(
            f"{QUESTION_KEY}{asked.question}", OutgoingMessage(self._format_question(asked.text), buttons)
        )
        self._questions.set_message_id(asked.question, posted.id)

    async def _close_question(self, question: str, reason: str) -> None:
        asked = self._questions.close(question)
        if asked is not None:
            await self._store_open_question()
            end = f"{reason}: {asked.given_answer}" if asked.given_answer and reason == ANSWERED else reason
            await self._show_closed(asked, end)

    async def _show_closed(self, asked: ShownQuestion, end: str) -> None:
        text = f"{self._format_question(asked.event.text)}\n({end})"
        await self._outbox.edit(asked.message_id, OutgoingMessage(text), is_last=True)

    async def _store_open_question(self) -> None:
        """Store the newest open question, before it is sent, so that the next process can close it."""
        newest = self._questions.newest
        encoded = msgspec.json.encode(newest).decode() if newest else ""
        await self._ledger.save_action(self._route.address, OPEN_QUESTION, encoded)

    async def _close_lost_question(self) -> None:
        """Close the question that was open when an earlier process ended. A later answer to it is refused."""
        stored = await self._ledger.find_action(self._route.address, OPEN_QUESTION)
        lost = msgspec.json.decode(stored, type=ShownQuestion) if stored else None
        if lost is not None and lost.event.question not in self._questions.open_ids:
            self._questions.add_closed(lost)
            message_id = await self._outbox.find_sent(f"{QUESTION_KEY}{lost.event.question}")
            await self._show_closed(replace(lost, message_id=message_id), RESTARTED)
            await self._store_open_question()

    def _format_question(self, text: str) -> str:
        """Format a question as one message. A long question is truncated, because its buttons need a single message."""
        end = cut_position(text, self._outbox.characters - QUESTION_RESERVED_CHARACTERS)
        return f"❓ {text}" if end == len(text) else f"❓ {text[:end]}…"

    async def _show_receipt(self, receipt: Receipt) -> None:
        message = self._route.platform_message_id(receipt.id)
        reaction = RECEIPT_REACTIONS.get(receipt.state)
        if not message or reaction is None or self._route.settings.receipts == "off":
            return
        if self._route.settings.receipts == "reactions" and self._route.surface.limits.has_reactions:
            self._outbox.start_optional(lambda: self._route.surface.react(self._route.address, message, reaction))
        elif receipt.state is not ReceiptState.STARTED:
            position = f" #{receipt.position}" if receipt.position else ""
            await self._outbox.send_text(
                f"note:{self._route.session.new_id()}", f"{reaction} {receipt.state}{position}"
            )
