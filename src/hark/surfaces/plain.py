"""A line-based terminal without cursor control. The user can type while the agent works."""

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
from hark.protocol.session import Session
from hark.protocol.tool import QuestionKind
from hark.text.status_text import describe_incomplete_turn

MIN_READ_SECONDS = 0.3
SHOWN_STATES = ("interrupting", "steering", "queued", "held")


class PlainTerminal:
    """The line-based terminal of one user; `/stop` stops the turn.

    A typed line answers the open question if the line is a valid answer: one of the choices for an approval, any
    text for other questions. A line typed before the user could have read the question is sent as a message.
    """

    def __init__(self, session: Session, output: TextIO = sys.stdout, *, is_sequential: bool = False) -> None:
        """Create the terminal. If `is_sequential`, finish each line's turn before reading the next, as for a file."""
        self._session = session
        self._output = output
        self._is_sequential = is_sequential
        self._question: QuestionAsked | None = None
        self._asked_at = 0.0
        self._is_mid_line = False

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Read lines until the end of the input, then wait for the running turn. Cancelling returns immediately."""
        showing = asyncio.create_task(self._show_events(self._session.events()), name="plain screen")
        try:
            if self._is_sequential:
                await self._session.idle()  # finish the messages of an earlier process first
            while line := await lines.readline():
                await self._handle_line(line.decode("utf-8", "replace").strip())
            await self._session.idle()
        finally:
            showing.cancel()

    async def _handle_line(self, text: str) -> None:
        if not text:
            return
        meaning = self._session.interpret(text, self._interpret_answer)
        if isinstance(meaning, AnswerMeaning):
            self._question = None
            refusal = await self._session.answer(meaning.question, text)
            if refusal:
                self._write_line(refusal.message)
        else:
            await self._session.say(text)
            if self._is_sequential:
                await self._session.idle()

    def _interpret_answer(self, text: str) -> AnswerMeaning | None:
        asked = self._question
        if asked is None or text.startswith("/"):
            return None
        is_readable = self._is_sequential or time.monotonic() - self._asked_at > MIN_READ_SECONDS
        is_approval = asked.kind is QuestionKind.APPROVAL
        is_answer = text.lower() in (*asked.choices, "y", "n") if is_approval else is_readable
        return AnswerMeaning(asked.question, text) if is_answer else None

    async def _show_events(self, events: AsyncIterator[AnyEvent]) -> None:
        async for event in events:
            self._show_event(event)

    def _show_event(self, event: AnyEvent) -> None:
        match event:
            case ReplyDelta(text=text):
                self._output.write(text)
                self._output.flush()
                self._is_mid_line = not text.endswith("\n")
            case ReplyRestarted():
                self._write_line("[The stream broke; the reply starts again.]")
            case CallStart(name=name, arguments=arguments):
                self._write_line(f"[{name} {arguments[:200]}]")
            case CallEnd(name=name, effect=effect):
                self._write_line(f"[{name}: {effect}]")
            case ReceiptChanged(receipt=receipt) if receipt.state in SHOWN_STATES:
                place = f" #{receipt.position}" if receipt.state in ("queued", "held") else ""
                self._write_line(f"[{receipt.state}{place}]")
            case QuestionAsked(text=text, choices=choices):
                self._question, self._asked_at = event, time.monotonic()
                self._write_line(f"? {text} ({' / '.join(choices)})" if choices else f"? {text}")
            case QuestionClosed(question=question, reason=reason):
                self._close_question(question, reason)
            case Notice(text=text):
                self._write_line(f"[{text}]")
            case TurnEnd():
                self._question = None
                problem = describe_incomplete_turn(event)
                self._write_line(f"[{problem}]" if problem else "")
            case _:
                pass

    def _close_question(self, question: str, reason: str) -> None:
        if reason != "answered":
            self._write_line(f"[The question was {reason}.]")
        if self._question is not None and self._question.question == question:
            self._question = None

    def _write_line(self, text: str) -> None:
        if self._is_mid_line:
            self._output.write("\n")
        self._is_mid_line = False
        if text:
            self._output.write(text + "\n")
        self._output.flush()
