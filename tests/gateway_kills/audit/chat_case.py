"""One chat before the audit: what its people did, what the journal says, what the ledger has, and what is shown."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.crash.audit import Findings
from tests.gateway_kills.audit.journal import Story
from tests.gateway_kills.expectations import Book, Written
from tests.gateway_kills.platforms.platform import Shown

LATE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Case:
    """`sent` is the ledger's: key to the platform's id. `prompt` has the messages of the last prompt that the model
    got from this chat, each with how often it stood there; None when nobody looked. `delivered` is how often a program
    was told of each turn's end. `late_seconds`: for so long something that was taken may be under way, as slow as this
    machine is.
    """

    findings: Findings
    session: str
    book: Book
    story: Story
    shown: Sequence[Shown]
    sent: Mapping[str, str]
    prompt: Counter[str] | None = None
    delivered: Mapping[str, int] = field(default_factory=dict[str, int])
    late_seconds: float = LATE_SECONDS

    @property
    def is_api(self) -> bool:
        return self.session.startswith("api-")

    @property
    def written(self) -> list[Written]:
        return list(self.book.in_chat(self.session))

    def count(self, what: str, times: int = 1) -> None:
        self.findings.counts[what] += times

    def wrong(self, kind: str, what: str) -> None:
        self.findings.wrong(kind, f"{self.session}: {what}")

    def shown_under(self, key: str) -> Shown | None:
        """Return what stands in the chat of what the ledger says was sent under a key."""
        message = self.sent.get(key)
        return next((shown for shown in self.shown if shown.id == message), None) if message else None

    def shown_with(self, key: str) -> list[Shown]:
        """Return what was sent under a key, and under those that go on with it by a colon."""
        ids = {message for name, message in self.sent.items() if name == key or name.startswith(f"{key}:")}
        return [shown for shown in self.shown if shown.id in ids]


def sent_of(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Return what the ledger says was sent, by session: key to the platform's id."""
    sessions = dict(connection.execute("SELECT address, session FROM lines"))
    found: dict[str, dict[str, str]] = {session: {} for session in sessions.values()}
    for address, key, message in connection.execute("SELECT address, key, message FROM sent"):
        found.setdefault(sessions.get(address, ""), {})[key] = message
    return found
