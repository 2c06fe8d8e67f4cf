"""The data of one chat for the audit: its users' actions, its journal, its ledger, and its visible messages."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.crash.audit import AuditResults
from tests.gateway_kills.audit.journal import JournalFacts
from tests.gateway_kills.expectations import Expectations, UserMessageRecord
from tests.gateway_kills.platforms.platform import VisibleMessage

LATE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ChatCase:
    """The data of one chat.

    `sent` maps ledger keys to platform ids. `prompt` counts the messages in the last prompt that the model received
    from this chat; None if it was not recorded. `delivered` counts how often a program received each turn's end.
    `late_seconds` is how long an accepted action may still be in progress on this machine.
    """

    findings: AuditResults
    session: str
    book: Expectations
    facts: JournalFacts
    visible_messages: Sequence[VisibleMessage]
    sent: Mapping[str, str]
    prompt: Counter[str] | None = None
    delivered: Mapping[str, int] = field(default_factory=dict[str, int])
    late_seconds: float = LATE_SECONDS

    @property
    def is_api(self) -> bool:
        return self.session.startswith("api-")

    @property
    def written(self) -> list[UserMessageRecord]:
        return list(self.book.messages_in_chat(self.session))

    def count(self, name: str, times: int = 1) -> None:
        self.findings.counts[name] += times

    def add_problem(self, kind: str, detail: str) -> None:
        self.findings.add_problem(kind, f"{self.session}: {detail}")

    def visible_message(self, key: str) -> VisibleMessage | None:
        """Return the visible message that was sent under a key, according to the ledger."""
        message = self.sent.get(key)
        return next((shown for shown in self.visible_messages if shown.id == message), None) if message else None

    def visible_messages_with_prefix(self, key: str) -> list[VisibleMessage]:
        """Return the visible messages that were sent under a key, or under keys that extend it after a colon."""
        ids = {message for name, message in self.sent.items() if name == key or name.startswith(f"{key}:")}
        return [shown for shown in self.visible_messages if shown.id in ids]


def read_sent_messages(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Return the sent messages in the ledger: for each session, a mapping from ledger key to platform id."""
    sessions = dict(connection.execute("SELECT address, session FROM lines"))
    found: dict[str, dict[str, str]] = {session: {} for session in sessions.values()}
    for address, key, message in connection.execute("SELECT address, key, message FROM sent"):
        found.setdefault(sessions.get(address, ""), {})[key] = message
    return found
