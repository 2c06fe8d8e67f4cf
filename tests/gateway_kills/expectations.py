"""What the people did and when it was acknowledged, which the audit compares with the outcome."""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

TOKEN = re.compile(r"\bm\d+(?:e\d+)?\b")  # a message's name, which stands in its text; e1 is that of its first edit
REPLY = re.compile(r"\br\d+\b")  # a model reply's name

TEXT, VOICE, NOISE, SILENCE, QUEUE, STEER = "text", "voice", "noise", "silence", "queue", "steer"
SPLIT, ALBUM, ASIDE = "split", "album", "aside"
INTERRUPT = "interrupt"
RECORDINGS = (VOICE, NOISE, SILENCE)
WORDLESS = (NOISE, SILENCE)


def tokens(text: str) -> list[str]:
    """Return the messages that a text has in it."""
    return TOKEN.findall(text)


def message_of(token: str) -> str:
    """Return the message that a token belongs to, edited or not."""
    return token.partition("e")[0]


@dataclass(slots=True)
class Deed:
    """Something that was done, and when the platform heard that it was taken: None when never.

    `name` is how our ledger calls it (kind, id, and of an edit its text), where no platform hears that it was taken.
    """

    at: float
    taken: float | None = None
    name: tuple[str, str, str] | None = None

    def take(self) -> None:
        self.taken = self.taken or time.time()


@dataclass(slots=True)
class Written:
    """One message of a person. `edits` are its later texts; `kind` tells how it came, `delivery` how it is meant.

    `author_id` stands for the author where the platform could not tell the name in time.
    """

    token: str
    chat: str
    kind: str
    text: str
    deed: Deed
    id: str = ""
    delivery: str = INTERRUPT
    author: str = ""
    author_id: str = ""
    edits: list[tuple[str, Deed]] = field(default_factory=list[tuple[str, Deed]])
    deleted: Deed | None = None
    is_told_stopped: bool = False

    def texts(self) -> list[str]:
        return [self.text, *(text for text, _ in self.edits)]

    def as_sent(self, text: str, *, has_commands: bool) -> str:
        """Return a text of this message as its person writes it."""
        return f"/{self.kind} {text}" if has_commands and self.kind in (QUEUE, STEER) else text


@dataclass(slots=True)
class Stop:
    """A wish to stop; `reply` is the one under which the button was pressed."""

    chat: str
    kind: str
    deed: Deed
    reply: str = ""


@dataclass(slots=True)
class Steer:
    """Somebody pressed the button under this message of ours, which tells the running turn an edited text."""

    chat: str
    message: str
    deed: Deed


@dataclass(slots=True)
class Book:
    """All of it, in order."""

    written: dict[str, Written] = field(default_factory=dict[str, Written])
    stops: list[Stop] = field(default_factory=list[Stop])
    steers: list[Steer] = field(default_factory=list[Steer])

    def write(self, chat: str, kind: str, plan: str) -> Written:
        token = f"m{len(self.written)}"
        one = self.written[token] = Written(token, chat, kind, f"{plan} {token}", Deed(time.time()))
        return one

    def of(self, token: str) -> Written | None:
        return self.written.get(message_of(token))

    def in_chat(self, chat: str) -> Iterable[Written]:
        return (one for one in self.written.values() if one.chat == chat)

    def deeds(self) -> Iterable[Deed]:
        """Return all that was done."""
        for one in self.written.values():
            yield one.deed
            yield from (deed for _, deed in one.edits)
            if one.deleted is not None:
                yield one.deleted
        yield from (stop.deed for stop in self.stops)
        yield from (steer.deed for steer in self.steers)
