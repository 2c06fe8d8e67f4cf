"""One-shot mode: runs one prompt, prints the answer to stdout and reports progress on stderr."""

import sys
from collections.abc import AsyncIterator
from typing import TextIO

import msgspec

from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallStart,
    Notice,
    ReceiptChanged,
    ReplyDelta,
    ReplyRestarted,
    TurnEnd,
)
from hark.protocol.outcomes import Completed, ErrorInfo, Failed, Interrupted, Outcome, Timings
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session
from hark.text.status_text import describe_incomplete_turn

STARTED_STATES = (ReceiptState.STARTED, ReceiptState.STEERED)
FATAL_NOTICE_CODES = ("store", "internal")


class OneShot:
    """Sends one message to a session and prints the answer as text, as one JSON object or as JSON events.

    If another client's message interrupts the turn, the answer to that message is printed instead.
    """

    def __init__(
        self, session: Session, output_format: str, output: TextIO = sys.stdout, progress: TextIO = sys.stderr
    ) -> None:
        self.message = ""
        self.turn = ""
        self._session = session
        self._output_format = output_format
        self._output = output
        self._progress_stream = progress
        self._awaited_messages: set[str] = set()
        self._text: list[str] = []
        self._calls: list[dict[str, object]] = []

    async def run(self, prompt: str) -> Outcome:
        """Run the prompt and return the outcome of its turn. Cancelling doesn't interrupt the turn.

        During the run, `message` is the id of the accepted prompt and `turn` is the turn that runs it. Otherwise both
        attributes are "".

        Raises:
            StoreError: The prompt was not accepted.
        """
        events = self._session.events()
        receipt = await self._session.say(prompt)
        if receipt.state is ReceiptState.REFUSED:
            reason = receipt.reason or "The queue is full."
            self._write_progress(reason)
            return Failed(ErrorInfo("queue_full", reason))
        self.message = receipt.id
        self._awaited_messages.add(receipt.id)
        outcome = await self._wait_for_outcome(events)
        self.message = self.turn = ""
        return outcome

    async def _wait_for_outcome(self, events: AsyncIterator[AnyEvent]) -> Outcome:
        async for event in events:
            if isinstance(event, ReceiptChanged):
                self._track_receipt(event.receipt)
            if event.turn == self.turn or event.turn is None:
                self._show_event(event)
            if isinstance(event, TurnEnd) and event.turn == self.turn:
                if not self._awaited_messages:
                    self._print_result(event)
                    return event.outcome
                self.turn = ""
            if isinstance(event, Notice) and event.turn is None and event.code in FATAL_NOTICE_CODES:
                return self._report_save_failure(event)
            if not self._awaited_messages and not self.turn:
                self._write_progress("the message was withdrawn")
                return Interrupted("withdrawn")
        return Interrupted("the session closed")

    def _report_save_failure(self, notice: Notice) -> Outcome:
        """Report that the session can't be saved. A script must not wait indefinitely until saving works again."""
        outcome = Failed(ErrorInfo(notice.code, notice.text))
        self._print_result(TurnEnd(notice.session, self.turn or None, notice.seq, notice.at, outcome, Timings()))
        return outcome

    def _track_receipt(self, receipt: Receipt) -> None:
        """Track the turn whose answer is printed: the prompt's turn, or the turn of the message that interrupted it."""
        if receipt.id in self._awaited_messages and receipt.state in STARTED_STATES:
            self._awaited_messages.discard(receipt.id)
            self.turn = receipt.turn or ""
            self._text.clear()
        elif receipt.state is ReceiptState.INTERRUPTING and self.turn and receipt.turn == self.turn:
            self._awaited_messages.add(receipt.id)
            self._write_progress("another message interrupted the turn; its answer is printed instead")
        elif receipt.state is ReceiptState.WITHDRAWN or (
            receipt.state is ReceiptState.HELD and receipt.id != self.message
        ):
            self._awaited_messages.discard(receipt.id)

    def _show_event(self, event: AnyEvent) -> None:
        if self._output_format == "events":
            self._write_line(msgspec.json.encode(event).decode())
        match event:
            case ReplyDelta(text=text):
                self._text.append(text)
            case ReplyRestarted():
                self._text.clear()
            case CallStart(name=name, arguments=arguments):
                self._write_progress(f"{name} {arguments[:200]}")
            case CallEnd(name=name, effect=effect):
                self._calls.append({"name": name, "call": event.call, "effect": effect, "is_error": event.is_error})
            case Notice(text=text):
                self._write_progress(text)
            case _:
                pass

    def _print_result(self, event: TurnEnd) -> None:
        outcome = event.outcome
        text = outcome.text if isinstance(outcome, Completed) else "".join(self._text)
        if self._output_format == "json":
            result = {
                "session": self._session.id,
                "turn": event.turn,
                "outcome": outcome,
                "text": text,
                "usage": event.usage,
                "cost": event.cost,
                "timings": event.timings,
                "calls": self._calls,
            }
            self._write_line(msgspec.json.encode(result).decode())
        elif self._output_format == "text" and text:
            self._write_line(text)
        if problem := describe_incomplete_turn(event):
            self._write_progress(problem)
        elif not text and not self._calls:
            self._write_progress("the reply was empty")

    def _write_line(self, text: str) -> None:
        self._output.write(text if text.endswith("\n") else text + "\n")
        self._output.flush()

    def _write_progress(self, text: str) -> None:
        self._progress_stream.write(f"hark: {text}\n")
        self._progress_stream.flush()
