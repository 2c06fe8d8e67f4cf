"""The transcript: what the model sees, valid for every wire protocol after a cut at any point."""

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from hark.engine.turn.tokens import estimate, tokens
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, Message, Note, UserMessage
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome

CRASH = "crash"
KEPT_WORDS = 3


class Transcript:
    """Messages in order, each with the turn that it belongs to."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.turns: list[str] = []
        self.tokens = 0  # about so many, of all messages
        self.memo: dict[object, Any] = {}  # see `Request.memo`
        self._summarised = 0  # how many of them stand for, or stood before, what was summarised

    def add(self, turn: str, message: Message) -> None:
        """Append a message; a reply that says nothing at all leaves no trace, as no API accepts it."""
        if isinstance(message, AssistantMessage) and not (message.text or message.calls or message.reasoning):
            return
        self.messages.append(message)
        self.turns.append(turn)
        self.tokens += tokens(message)

    def end_turn(self, turn: str, outcome: Outcome) -> None:
        """Tell the model how the turn ended, unless it ended by itself."""
        text = ending_note(outcome, has_reply=self._has_reply(turn))
        if text:
            self.add(turn, Note(text))

    def remark(self, text: str) -> None:
        """Tell the model something about the conversation itself."""
        self.add(self.turns[-1] if self.turns else "", Note(f"[{text}]"))

    def knows(self, turn: str) -> bool:
        """Tell whether a turn is there as it was, nothing of it summarised."""
        return turn in self.turns[self._summarised :] and turn not in self.turns[: self._summarised]

    def of(self, turn: str) -> list[Message] | None:
        """Return a turn's messages; None when they are not all here. Of the last turn it costs nothing."""
        end = len(self.turns)
        while end > self._summarised and self.turns[end - 1] != turn:
            end -= 1
        start = end
        while start > self._summarised and self.turns[start - 1] == turn:
            start -= 1
        is_whole = start > self._summarised or turn not in self.turns[:start]
        return self.messages[start:end] if start < end and is_whole else None

    def rewind(self, turn: str) -> None:
        """Forget a turn and all that came after it; "" forgets everything."""
        place = self.turns.index(turn) if turn else 0
        del self.messages[place:]
        del self.turns[place:]
        self.tokens = estimate(self.messages)
        self._summarised = min(self._summarised, place)

    def compact(self, count: int, summary: str) -> None:
        """Put a summary in the place of the first messages; the person's last words among them stay as they are."""
        kept = [place for place in range(count) if isinstance(self.messages[place], UserMessage)][-KEPT_WORDS:]
        note = Note(f"[What came before, in your own notes:]\n{summary}")
        turn = self.turns[count - 1]
        self.messages = [note, *(self.messages[place] for place in kept), *self.messages[count:]]
        self.turns = [turn, *(self.turns[place] for place in kept), *self.turns[count:]]
        self.tokens = estimate(self.messages)
        self._summarised = 1 + len(kept)

    def _has_reply(self, turn: str) -> bool:
        for message, owner in zip(reversed(self.messages), reversed(self.turns), strict=True):
            if owner != turn:
                return False
            if isinstance(message, AssistantMessage):
                return True
        return False


def ending_note(outcome: Outcome, *, has_reply: bool) -> str:
    """Return what the model is told of a turn's end; it never repeats what was said."""
    reply = "The reply above was cut off there and is not finished." if has_reply else "There was no reply yet."
    match outcome:
        case Completed():
            return ""
        case Interrupted(source) if source == CRASH:
            return f"[This turn was cut by a crash of the program. {reply}]"
        case Interrupted(source):
            return f"[This turn was interrupted: {source}. {reply}]"
        case Failed(error):
            return f"[This turn failed: {error.code}. {reply}]"
        case LimitReached(limit):
            return f"[This turn reached its limit of {limit}. {reply}]"
        case _:
            assert_never(outcome)


def close_calls(calls: Iterable[Call], started: Sequence[str], why: str) -> list[CallResult]:
    """Return results for calls that have none: what was started has an unknown effect, the others have none."""
    return [
        CallResult(
            call.id, call.name, f"[{why}; its effect is unknown: check before you repeat it]", Effect.UNKNOWN, True
        )
        if call.id in started
        else CallResult(call.id, call.name, f"[{why}; it was not started]", Effect.NOT_STARTED, True)
        for call in calls
    ]
