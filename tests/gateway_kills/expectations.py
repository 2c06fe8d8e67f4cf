"""The users' actions and when they were accepted. The audit compares them with the results."""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

TOKEN = re.compile(r"\bm\d+(?:e\d+)?\b")  # a message's name, which is part of its text; `e1` marks its first edit
REPLY = re.compile(r"\br\d+\b")  # a model reply's name

TEXT, VOICE, NOISE, SILENCE, QUEUE, STEER = "text", "voice", "noise", "silence", "queue", "steer"
SPLIT, ALBUM, ASIDE = "split", "album", "aside"
INTERRUPT = "interrupt"
RECORDINGS = (VOICE, NOISE, SILENCE)
WORDLESS = (NOISE, SILENCE)


def find_tokens(text: str) -> list[str]:
    """Return the tokens in a text. A token identifies a message or an edit, such as m0 or m0e1."""
    return TOKEN.findall(text)


def message_of(token: str) -> str:
    """Return the token of the message that a token refers to, such as m0 for the edit m0e1."""
    return token.partition("e")[0]


@dataclass(slots=True)
class UserAction:
    """A user's action, and the time at which the platform learned of its acceptance, if any.

    `name` identifies the action in Hark's ledger (kind, id, and the text of an edit) if the platform doesn't learn of
    its acceptance.
    """

    at: float
    accepted_at: float | None = None
    name: tuple[str, str, str] | None = None

    def mark_accepted(self) -> None:
        self.accepted_at = self.accepted_at or time.time()


@dataclass(slots=True)
class UserMessageRecord:
    """A user's message. `edits` are its later texts. `kind` is how it was sent, `delivery` its intended delivery.

    `author_id` replaces the author if the platform could not resolve the name in time.
    """

    token: str
    chat: str
    kind: str
    text: str
    action: UserAction
    id: str = ""
    delivery: str = INTERRUPT
    author: str = ""
    author_id: str = ""
    edits: list[tuple[str, UserAction]] = field(default_factory=list[tuple[str, UserAction]])
    deleted: UserAction | None = None
    is_reported_stopped: bool = False

    def texts(self) -> list[str]:
        return [self.text, *(text for text, _ in self.edits)]

    def as_sent(self, text: str, *, has_commands: bool) -> str:
        """Return the text that a user would type to send this message with `text`."""
        return f"/{self.kind} {text}" if has_commands and self.kind in (QUEUE, STEER) else text


@dataclass(slots=True)
class StopAction:
    """A user's stop. If the user pressed a button, `reply` is the reply with that button."""

    chat: str
    kind: str
    action: UserAction
    reply: str = ""


@dataclass(slots=True)
class SteerAction:
    """A press of the button under `message`, which sends an edited text to the running turn."""

    chat: str
    message: str
    action: UserAction


@dataclass(slots=True)
class Expectations:
    """The users' messages, stops and steers, each in order."""

    messages: dict[str, UserMessageRecord] = field(default_factory=dict[str, UserMessageRecord])
    stops: list[StopAction] = field(default_factory=list[StopAction])
    steers: list[SteerAction] = field(default_factory=list[SteerAction])

    def add_message(self, chat: str, kind: str, plan: str) -> UserMessageRecord:
        token = f"m{len(self.messages)}"
        one = self.messages[token] = UserMessageRecord(token, chat, kind, f"{plan} {token}", UserAction(time.time()))
        return one

    def find(self, token: str) -> UserMessageRecord | None:
        return self.messages.get(message_of(token))

    def messages_in_chat(self, chat: str) -> Iterable[UserMessageRecord]:
        return (one for one in self.messages.values() if one.chat == chat)

    def actions(self) -> Iterable[UserAction]:
        """Yield the actions of all messages, edits, deletions, stops and steers."""
        for one in self.messages.values():
            yield one.action
            yield from (deed for _, deed in one.edits)
            if one.deleted is not None:
                yield one.deleted
        yield from (stop.action for stop in self.stops)
        yield from (steer.action for steer in self.steers)
