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
from hark.protocol.meaning import AnswerMeaning, CommandMeaning, InvalidAnswerMeaning
from hark.protocol.session import Session
from hark.text.answers import AnswerResult, find_answer
from hark.text.status_text import describe_incomplete_turn

MIN_READ_SECONDS = 0.3
SHOWN_STATES = ("interrupting", "steering", "queued", "held")


class PlainTerminal:
    """The line-based terminal of one user; `/stop` stops the turn.

    A typed line answers an open question if it is a choice's number, letter or text, or if the question has no
    choices. Free text that was typed before the user could have read the question is sent as a message.
    """

    def __init__(self, session: Session, output: TextIO = sys.stdout, *, is_sequential: bool = False) -> None:
        """Create the terminal. If `is_sequential`, finish each line's turn before reading the next, as for a file."""
        self._session = session
        self._output = output
        self._is_sequential = is_sequential
        self._questions: dict[str, QuestionAsked] = {}
        self._last_closed: QuestionAsked | None = None  # in the running turn
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
        meaning = self._session.interpret(text, self._find_answer)
        if isinstance(meaning, InvalidAnswerMeaning):
            self._write_line(f"[{meaning.reason}]")
        elif isinstance(meaning, AnswerMeaning):
            self._close_question(meaning.question)
            refusal = await self._session.answer(meaning.question, meaning.text)
            if refusal:
                self._write_line(f"[{refusal.message}]")
        elif self._is_sequential and isinstance(meaning, CommandMeaning):
            self._write_line(f"[{await self._session.run_command(meaning)}]")  # the input may end before a notice
            await self._session.idle()
        else:
            await self._session.say(text)
            if self._is_sequential:
                await self._session.idle()

    def _find_answer(self, text: str) -> AnswerResult:
        is_readable = self._is_sequential or time.monotonic() - self._asked_at > MIN_READ_SECONDS
        return find_answer(text, self._questions.values(), self._last_closed, is_private=is_readable)

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
                self._questions[event.question], self._asked_at = event, time.monotonic()
                self._write_line(f"? {text} ({' / '.join(choices)})" if choices else f"? {text}")
            case QuestionClosed(question=question, reason=reason):
                if reason != "answered":
                    self._write_line(f"[The question was {reason}.]")
                self._close_question(question)
            case Notice(text=text):
                self._write_line(f"[{text}]")
            case TurnEnd():
                self._questions = {name: asked for name, asked in self._questions.items() if asked.turn is None}
                self._last_closed = None
                problem = describe_incomplete_turn(event)
                self._write_line(f"[{problem}]" if problem else "")
            case _:
                pass

    def _close_question(self, question: str) -> None:
        self._last_closed = self._questions.pop(question, self._last_closed)

    def _write_line(self, text: str) -> None:
        if self._is_mid_line:
            self._output.write("\n")
        self._is_mid_line = False
        if text:
            self._output.write(text + "\n")
        self._output.flush()
