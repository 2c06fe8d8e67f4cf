"""One shot: a prompt in, the answer on stdout, progress on stderr."""

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
from hark.protocol.outcomes import Completed, ErrorInfo, Failed, Interrupted, LimitReached, Outcome, Timings
from hark.protocol.receipts import Receipt, ReceiptState
from hark.protocol.session import Session

TAKEN = (ReceiptState.STARTED, ReceiptState.STEERED)
LOST = ("store", "internal")
NOT_TO_COME = (ReceiptState.HELD, ReceiptState.WITHDRAWN)


class OneShot:
    """Says one thing to a session and prints what comes of it, as text, as one JSON object, or as JSON events.

    A message that somebody else sends to cut the turn is a better prompt: the answer is then that of its turn.
    """

    def __init__(self, session: Session, form: str, out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> None:
        self.message = ""
        self.turn = ""
        self._session = session
        self._form = form
        self._out = out
        self._err = err
        self._next: set[str] = set()
        self._text: list[str] = []
        self._calls: list[dict[str, object]] = []

    async def run(self, prompt: str) -> Outcome:
        """Return how the prompt's turn ended. Cancelling does not stop the turn: interrupt the session.

        `message` is the prompt's id once it is accepted, `turn` the turn that works on it; "" again when it is over.

        Raises:
            StoreError: The prompt was not accepted.
        """
        events = self._session.events()
        receipt = await self._session.say(prompt)
        self.message = receipt.id
        self._next.add(receipt.id)
        outcome = await self._watch(events)
        self.message = self.turn = ""
        return outcome

    async def _watch(self, events: AsyncIterator[AnyEvent]) -> Outcome:
        async for event in events:
            if isinstance(event, ReceiptChanged):
                self._follow(event.receipt)
            if event.turn == self.turn or event.turn is None:
                self._show(event)
            if isinstance(event, TurnEnd) and event.turn == self.turn:
                if not self._next:
                    self._finish(event)
                    return event.outcome
                self.turn = ""
            if isinstance(event, Notice) and event.turn is None and event.code in LOST:
                return self._lose(event)
            if not self._next and not self.turn:
                self._progress("the message was withdrawn")
                return Interrupted("withdrawn")
        return Interrupted("the session closed")

    def _lose(self, notice: Notice) -> Outcome:
        """The session can't be saved: nobody knows when it goes on, and a script must not wait for that."""
        outcome = Failed(ErrorInfo(notice.code, notice.text))
        self._finish(TurnEnd(notice.session, self.turn or None, notice.seq, notice.at, outcome, Timings()))
        return outcome

    def _follow(self, receipt: Receipt) -> None:
        """Keep track of the turn that answers: the one that took our message, or took the place of that one."""
        if receipt.id in self._next and receipt.state in TAKEN:
            self._next.discard(receipt.id)
            self.turn = receipt.turn or ""
            self._text.clear()
        elif receipt.state is ReceiptState.INTERRUPTING and self.turn and receipt.turn == self.turn:
            self._next.add(receipt.id)
            self._progress("another message cuts in: its answer takes the place of this one")
        elif receipt.state is ReceiptState.WITHDRAWN or (receipt.state in NOT_TO_COME and receipt.id != self.message):
            self._next.discard(receipt.id)

    def _show(self, event: AnyEvent) -> None:
        if self._form == "events":
            self._line(msgspec.json.encode(event).decode())
        match event:
            case ReplyDelta(text=text):
                self._text.append(text)
            case ReplyRestarted():
                self._text.clear()
            case CallStart(name=name, arguments=arguments):
                self._progress(f"{name} {arguments[:200]}")
            case CallEnd(name=name, effect=effect):
                self._calls.append({"name": name, "call": event.call, "effect": effect, "is_error": event.is_error})
            case Notice(text=text):
                self._progress(text)
            case _:
                pass

    def _finish(self, event: TurnEnd) -> None:
        outcome = event.outcome
        text = outcome.text if isinstance(outcome, Completed) else "".join(self._text)
        if self._form == "json":
            whole = {
                "session": self._session.id,
                "turn": event.turn,
                "outcome": outcome,
                "text": text,
                "usage": event.usage,
                "cost": event.cost,
                "timings": event.timings,
                "calls": self._calls,
            }
            self._line(msgspec.json.encode(whole).decode())
        elif self._form == "text" and text:
            self._line(text)
        match outcome:
            case Completed("") if not self._calls:
                self._progress("the reply was empty")
            case Completed():
                pass
            case Interrupted(source):
                self._progress(f"stopped by {source} in {event.timings.settle:.1f} ms")
            case Failed(error):
                self._progress(f"failed: {error.message}")
            case LimitReached(_, message):
                self._progress(message)

    def _line(self, text: str) -> None:
        self._out.write(text if text.endswith("\n") else text + "\n")
        self._out.flush()

    def _progress(self, text: str) -> None:
        self._err.write(f"hark: {text}\n")
        self._err.flush()
