"""One address and its session: what comes in goes to the session in order, what comes of it goes back."""

import asyncio
import zlib
from collections.abc import Collection
from dataclasses import dataclass

import anyio

from hark.protocol.chat import Address, Button, ChatSurface, Incoming, Outgoing, Pressed, Removed, Rewritten, Written
from hark.protocol.chat_ledger import ChatLedger
from hark.protocol.chat_session import ChatSession
from hark.protocol.events import (
    AnyEvent,
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
from hark.protocol.receipts import Receipt, ReceiptState
from hark.surfaces.chat.outbox import Outbox
from hark.surfaces.chat.reply import Reply
from hark.surfaces.chat.settings import ChatSettings

TYPING_SECONDS = 4.0
SIGNS = {
    ReceiptState.STARTED: "👀",
    ReceiptState.INTERRUPTING: "⚡",
    ReceiptState.STEERING: "↪",
    ReceiptState.STEERED: "↪",
    ReceiptState.QUEUED: "⏳",
    ReceiptState.HELD: "⏸",
    ReceiptState.WITHDRAWN: "🗑",
}


@dataclass(frozen=True, slots=True)
class Line:
    """What a conversation stands between: the platform, the address on it, and the session."""

    surface: ChatSurface
    address: Address
    session: ChatSession
    settings: ChatSettings
    stop_words: Collection[str]


class Conversation:
    """Runs one address. `take` deals with what came in, one after the other; `run` shows what comes of it."""

    def __init__(self, line: Line, ledger: ChatLedger) -> None:
        self._line = line
        self._ledger = ledger
        self._outbox = Outbox(line.surface, line.address, ledger)
        self._reply: Reply | None = None
        self._growing: asyncio.Task[None] | None = None
        self._questions: dict[str, tuple[str, tuple[str, ...], str]] = {}
        self._said: dict[str, str] = {}  # our names of messages, to the platform's
        self._turn = ""

    # In.

    async def take(self, incoming: Incoming) -> None:
        """Deal with one thing that came in; it is durable where it belongs when this returns."""
        match incoming:
            case Written():
                await self._hear(incoming)
            case Rewritten(id=message, text=text):
                await self._rewrite(message, text)
            case Removed(id=message):
                await self._line.session.withdraw(self._name(message))
            case Pressed(value=value):
                await self._press(value)

    def is_stop(self, text: str) -> bool:
        """Tell whether a whole message is a stop word."""
        return text.strip().strip("!.。！ ").casefold() in self._line.stop_words

    @property
    def is_at_rest(self) -> bool:
        """True when no turn runs, as far as is known here."""
        return not self._turn

    async def stop(self, source: str) -> None:
        """Stop what runs."""
        await self._line.session.interrupt(source)

    async def _hear(self, message: Written) -> None:
        if self.is_stop(message.text) and not message.attachments:
            await self.stop("user")
            return
        name = self._name(message.id)
        self._said[name] = message.id
        await self._ledger.owe(self._line.address)
        text = message.text
        if message.quoted:
            text = f"[In reply to: {message.quoted[:500]}]\n{text}"
        question = next(iter(self._questions), "")
        if question and not self._questions[question][1] and not text.startswith("/"):
            await self._line.session.answer(question, text)  # a question without choices asks for words
            return
        author = message.author.name or message.author.id
        await self._line.session.say(text, id=name, author=author, attachments=message.attachments)

    async def _rewrite(self, message: str, text: str) -> None:
        name = self._name(message)
        refusal = await self._line.session.edit(name, text)
        if refusal is not None and self._turn:
            button = Button("↪ Tell it the new text", f"steer:{message}")
            self._said[f"edit:{message}"] = text
            words = "That message was taken already."
            await self._outbox.send(f"edit:{message}:{zlib.crc32(text.encode())}", Outgoing(words, (button,)))

    async def _press(self, value: str) -> None:
        kind, _, rest = value.partition(":")
        if kind == "stop":
            await self._line.session.interrupt("button", rest)
        elif kind == "answer":
            question, _, place = rest.rpartition(":")
            asked = self._questions.get(question)
            if asked and place.isdigit() and int(place) < len(asked[1]):
                await self._line.session.answer(question, asked[1][int(place)])
            else:
                await self._outbox.note(lambda: self.tell("That question is not open any more."))
        elif kind == "steer" and (text := self._said.pop(f"edit:{rest}", "")):
            await self._line.session.say(text, "steer")

    # Out.

    async def run(self, delivered: int) -> None:
        """Show what comes of the session, until cancelled; first what is owed since turn number `delivered`."""
        events = self._line.session.events()
        await self._line.session.opened()
        await self._deliver_owed(delivered)
        try:
            async for event in events:
                await self._show(event)
        finally:
            with anyio.CancelScope(shield=True):  # both only wait, and hear the cancel
                await self._stop_growing()
                await self._outbox.close()

    async def _deliver_owed(self, delivered: int) -> None:
        for turn, outcome in await self._line.session.ended_turns(delivered):
            reply = Reply(turn, self._line.address, self._line.surface.manners, self._outbox)
            await reply.finish(await self._line.session.reply_of(turn), outcome)
            await self._ledger.delivered(self._line.address, number_of(turn), is_all=False)

    async def _show(self, event: AnyEvent) -> None:
        match event:
            case TurnStart():
                await self._begin(event.turn or "")
            case ReplyDelta(text=text) if self._reply is not None:
                self._reply.add(text)
            case ReplyRestarted() if self._reply is not None:
                self._reply.restart_step()
            case StepStart() if self._reply is not None:
                self._reply.next_step()
            case CallStart():
                await self._outbox.note(lambda: self._line.surface.typing(self._line.address))
            case QuestionAsked():
                await self._ask(event)
            case QuestionClosed(question=question, reason=reason):
                await self._close_question(question, reason)
            case ReceiptChanged(receipt=receipt):
                await self._sign(receipt)
            case Notice(text=text, code=code) if code not in ("retry", "silence", "compaction"):
                await self.tell(text)
            case TurnEnd():
                await self._end(event)
            case _:
                pass

    async def _begin(self, turn: str) -> None:
        self._turn = turn
        self._reply = Reply(turn, self._line.address, self._line.surface.manners, self._outbox)
        self._growing = asyncio.create_task(self._grow(self._reply), name=f"reply {turn}")

    async def _grow(self, reply: Reply) -> None:
        await self._outbox.note(lambda: self._line.surface.typing(self._line.address))
        if self._line.settings.streams:
            await reply.grow()

    async def _end(self, event: TurnEnd) -> None:
        await self._stop_growing()
        turn = event.turn or ""
        reply = self._reply or Reply(turn, self._line.address, self._line.surface.manners, self._outbox)
        await reply.finish(await self._line.session.reply_of(turn), event.outcome)
        self._reply, self._turn = None, ""
        is_all = not await self._line.session.queue()
        await self._ledger.delivered(self._line.address, number_of(turn), is_all=is_all)

    async def _stop_growing(self) -> None:
        growing, self._growing = self._growing, None
        if growing is not None:
            growing.cancel()
            await asyncio.wait([growing])

    async def _ask(self, asked: QuestionAsked) -> None:
        buttons = tuple(
            Button(choice, f"answer:{asked.question}:{place}") for place, choice in enumerate(asked.choices)
        )
        self._questions[asked.question] = asked.text, asked.choices, ""  # it may be answered while it is being sent
        posted = await self._outbox.send(f"ask:{asked.question}", Outgoing(f"❓ {asked.text}", buttons))
        self._questions[asked.question] = asked.text, asked.choices, posted.id

    async def _close_question(self, question: str, reason: str) -> None:
        known = self._questions.pop(question, None)
        if known is not None:
            await self._outbox.edit(known[2], Outgoing(f"❓ {known[0]}\n({reason})"), is_last=True)

    async def _sign(self, receipt: Receipt) -> None:
        message = self._said.get(receipt.id)
        sign = SIGNS.get(receipt.state)
        if message is None or sign is None or self._line.settings.receipts == "off":
            return
        if self._line.settings.receipts == "reactions" and self._line.surface.manners.has_reactions:
            await self._outbox.note(lambda: self._line.surface.react(self._line.address, message, sign))
        elif receipt.state is not ReceiptState.STARTED:
            place = f" #{receipt.position}" if receipt.position else ""
            await self.tell(f"{sign} {receipt.state}{place}")

    async def tell(self, text: str) -> None:
        """Say something that belongs to no turn."""
        await self._outbox.send(f"note:{self._line.session.new_id()}", Outgoing(text))

    def _name(self, message: str) -> str:
        address = self._line.address
        return f"{address.surface}:{address.chat}:{address.thread}:{message}"


def number_of(turn: str) -> int:
    """Return a turn's place in its session, which its name ends with."""
    digits = turn.rpartition(".t")[2]
    return int(digits) if digits.isdigit() else 0
