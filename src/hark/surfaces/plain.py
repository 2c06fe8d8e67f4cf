"""A terminal without cursor tricks: lines in, lines out, and typing works while the agent does."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import TextIO

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
    TurnEnd,
)
from hark.protocol.meaning import AnswerMeaning
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached
from hark.protocol.session import Session
from hark.protocol.tool import QuestionKind

READ_SECONDS = 0.3
SAID = {"interrupting": "interrupting", "steering": "steering", "queued": "queued", "held": "held"}


class Plain:
    """One person at a line-by-line terminal; /stop stops.

    A line answers a question if it may be meant so: an approval by one of its choices, any other question by words. A
    line that was on its way before the question could be read is a message.
    """

    def __init__(self, session: Session, out: TextIO = sys.stdout, *, waits: bool = False) -> None:
        """`waits`: answer each line before the next is read, as for input from a file."""
        self._session = session
        self._out = out
        self._waits = waits
        self._asked: QuestionAsked | None = None
        self._asked_at = 0.0
        self._is_mid_line = False

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Read until the end of input; what still runs is finished first. Cancelling ends at once."""
        showing = asyncio.create_task(self._show_all(self._session.events()), name="plain screen")
        try:
            if self._waits:
                await self._session.idle()  # what was left for us comes first
            while line := await lines.readline():
                await self._take(line.decode("utf-8", "replace").strip())
            await self._session.idle()
        finally:
            showing.cancel()

    async def _take(self, text: str) -> None:
        if not text:
            return
        meaning = self._session.meaning(text, self._answer)
        if isinstance(meaning, AnswerMeaning):
            self._asked = None
            refusal = await self._session.answer(meaning.question, text)
            if refusal:
                self._line(refusal.message)
        else:
            await self._session.say(text)
            if self._waits:
                await self._session.idle()

    def _answer(self, text: str) -> AnswerMeaning | None:
        asked = self._asked
        if asked is None or text.startswith("/"):
            return None
        is_readable = self._waits or time.monotonic() - self._asked_at > READ_SECONDS
        is_approval = asked.kind is QuestionKind.APPROVAL
        is_answer = text.lower() in (*asked.choices, "y", "n") if is_approval else is_readable
        return AnswerMeaning(asked.question, text) if is_answer else None

    async def _show_all(self, events: AsyncIterator[AnyEvent]) -> None:
        async for event in events:
            self._show(event)

    def _show(self, event: AnyEvent) -> None:
        match event:
            case ReplyDelta(text=text):
                self._out.write(text)
                self._out.flush()
                self._is_mid_line = not text.endswith("\n")
            case ReplyRestarted():
                self._line("[the connection broke; the reply starts again]")
            case CallStart(name=name, arguments=arguments):
                self._line(f"[{name} {arguments[:200]}]")
            case CallEnd(name=name, effect=effect):
                self._line(f"[{name}: {effect}]")
            case ReceiptChanged(receipt=receipt) if receipt.state in SAID:
                place = f" #{receipt.position}" if receipt.state in ("queued", "held") else ""
                self._line(f"[{SAID[receipt.state]}{place}]")
            case QuestionAsked(text=text, choices=choices):
                self._asked, self._asked_at = event, time.monotonic()
                self._line(f"? {text} ({' / '.join(choices)})" if choices else f"? {text}")
            case QuestionClosed(question=question, reason=reason):
                self._close(question, reason)
            case Notice(text=text):
                self._line(f"[{text}]")
            case TurnEnd():
                self._asked = None
                self._end(event)
            case _:
                pass

    def _close(self, question: str, reason: str) -> None:
        if reason != "answered":
            self._line(f"[the question is {reason}]")
        if self._asked is not None and self._asked.question == question:
            self._asked = None

    def _end(self, event: TurnEnd) -> None:
        match event.outcome:
            case Completed():
                self._line("")
            case Interrupted(source):
                self._line(f"[stopped by {source} in {event.timings.settle:.1f} ms]")
            case Failed(error):
                self._line(f"[failed: {error.message}]")
            case LimitReached(_, message):
                self._line(f"[{message}]")

    def _line(self, text: str) -> None:
        if self._is_mid_line:
            self._out.write("\n")
        self._is_mid_line = False
        if text:
            self._out.write(text + "\n")
        self._out.flush()
