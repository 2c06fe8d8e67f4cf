"""The transcript: the conversation as the model sees it, valid for every wire protocol after any interruption."""

from collections.abc import Collection, Iterable
from typing import Any, assert_never

from hark.engine.turn.tokens import estimate_tokens, estimate_total_tokens
from hark.protocol.commands import CRASH, PAUSE
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, Message, Note, UserMessage
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome

KEPT_USER_MESSAGES = 3


class Transcript:
    """Messages in order, each with the turn that it belongs to."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.turns: list[str] = []
        self.tokens = 0  # estimated, of all messages
        self.memo: dict[object, Any] = {}  # see `Request.memo`
        self._summarised = 0  # the number of leading messages that are, or precede, the summary

    def add(self, turn: str, message: Message) -> None:
        """Append a message. An empty reply is omitted, because no API accepts it."""
        if isinstance(message, AssistantMessage) and not (message.text or message.calls or message.reasoning):
            return
        self.messages.append(message)
        self.turns.append(turn)
        self.tokens += estimate_tokens(message)

    def add_outcome_note(self, turn: str, outcome: Outcome) -> None:
        """Add a note for the model about how the turn ended, unless it completed."""
        text = ending_note(outcome, has_reply=self._has_reply(turn))
        if text:
            self.add(turn, Note(text))

    def add_note(self, text: str) -> None:
        """Add a note for the model about the conversation itself."""
        self.add(self.turns[-1] if self.turns else "", Note(f"[{text}]"))

    def has_full_turn(self, turn: str) -> bool:
        """Return whether a turn is in the transcript and no part of it was summarised."""
        return turn in self.turns[self._summarised :] and turn not in self.turns[: self._summarised]

    def messages_of_turn(self, turn: str) -> list[Message] | None:
        """Return a turn's messages, or None if some were summarised. Fast for the last turn."""
        end = len(self.turns)
        while end > self._summarised and self.turns[end - 1] != turn:
            end -= 1
        start = end
        while start > self._summarised and self.turns[start - 1] == turn:
            start -= 1
        is_whole = start > self._summarised or turn not in self.turns[:start]
        return self.messages[start:end] if start < end and is_whole else None

    def rewind(self, turn: str) -> None:
        """Remove a turn and all later messages; "" removes everything."""
        index = self.turns.index(turn) if turn else 0
        del self.messages[index:]
        del self.turns[index:]
        self.tokens = estimate_total_tokens(self.messages)
        self._summarised = min(self._summarised, index)

    def compact(self, count: int, summary: str) -> None:
        """Replace the first `count` messages with a summary. The user's last messages among them are kept."""
        kept = [index for index in range(count) if isinstance(self.messages[index], UserMessage)][-KEPT_USER_MESSAGES:]
        note = Note(f"[What came before, in your own notes:]\n{summary}")
        turn = self.turns[count - 1]
        self.messages = [note, *(self.messages[index] for index in kept), *self.messages[count:]]
        self.turns = [turn, *(self.turns[index] for index in kept), *self.turns[count:]]
        self.tokens = estimate_total_tokens(self.messages)
        self._summarised = 1 + len(kept)

    def _has_reply(self, turn: str) -> bool:
        for message, owner in zip(reversed(self.messages), reversed(self.turns), strict=True):
            if owner != turn:
                return False
            if isinstance(message, AssistantMessage):
                return True
        return False


def ending_note(outcome: Outcome, *, has_reply: bool) -> str:
    """Return the note for the model about a turn's end, or "". Don't change the wording: stored notes contain it."""
    reply = "The reply above was cut off there and is not finished." if has_reply else "There was no reply yet."
    match outcome:
        case Completed():
            return ""
        case Interrupted(source) if source == CRASH:
            return f"[This turn was cut by a crash of the program. {reply}]"
        case Interrupted(source) if source == PAUSE:
            return "[The user paused this turn after the last step. It is not finished.]"
        case Interrupted(source):
            return f"[This turn was interrupted: {source}. {reply}]"
        case Failed(error):
            return f"[This turn failed: {error.code}. {reply}]"
        case LimitReached(limit):
            return f"[This turn reached its limit of {limit}. {reply}]"
        case _:
            assert_never(outcome)


def close_calls(calls: Iterable[Call], started: Collection[str], reason: str) -> list[CallResult]:
    """Return results for unfinished calls: "effect unknown" if the call was started, otherwise "not started"."""
    return [
        CallResult(
            call.id, call.name, f"[{reason}; its effect is unknown: check before you repeat it]", Effect.UNKNOWN, True
        )
        if call.id in started
        else CallResult(call.id, call.name, f"[{reason}; it was not started]", Effect.NOT_STARTED, True)
        for call in calls
    ]
