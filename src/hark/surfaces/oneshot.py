"""One shot: a prompt in, the answer on stdout, progress on stderr."""

import sys
from typing import TextIO

import msgspec

from hark.protocol.events import AnyEvent, CallEnd, CallStart, Notice, ReplyDelta, ReplyRestarted, TurnEnd
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.surface import SessionPort


class OneShot:
    """Says one thing to a session and prints what comes of it, as text, as one JSON object, or as JSON events."""

    def __init__(self, session: SessionPort, form: str, out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> None:
        self._session = session
        self._form = form
        self._out = out
        self._err = err
        self._text: list[str] = []
        self._calls: list[dict[str, object]] = []

    async def run(self, prompt: str) -> Outcome:
        """Return how the prompt's turn ended. Cancelling does not stop the turn: interrupt the session.

        Raises:
            StoreError: The prompt was not accepted.
        """
        events = self._session.events()
        receipt = await self._session.say(prompt)
        turn = receipt.turn if receipt.state == "started" else None
        async for event in events:
            if turn is None and event.type == "turn.started" and receipt.id in msgspec.to_builtins(event)["messages"]:
                turn = event.turn
            if event.turn == turn or event.turn is None:
                self._show(event)
            if isinstance(event, TurnEnd) and event.turn == turn:
                self._finish(event)
                return event.outcome
        return Interrupted("the session closed")

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
            case Completed():
                pass
            case Interrupted(source):
                self._progress(f"stopped by {source} in {event.timings.settle:.0f} ms")
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
