"""All observations made during a run, for the checks afterwards. Increasing sequence numbers (marks) order them."""

import hashlib
from dataclasses import dataclass, field

from hark.protocol.commands import Delivery
from hark.protocol.provider import Request
from hark.protocol.receipts import Receipt, Settled
from hark.protocol.records import AnyRecord, Steered, TurnStarted
from hark.protocol.store import InboxEntry
from tests.simulation.storage import SharedState


@dataclass(slots=True)
class CommittedRecord:
    """A journal record with the time and the writer of its commit."""

    record: AnyRecord
    mark: int
    at: float
    writer: str


@dataclass(slots=True)
class SentMessage:
    """A message from a user, with all its receipts."""

    id: str
    text: str
    delivery: Delivery
    called_mark: int
    said_mark: int | None = None  # when the first machine received it
    receipts: list[tuple[int, Receipt]] = field(default_factory=list[tuple[int, Receipt]])


@dataclass(slots=True)
class StopRequest:
    """A stop requested by a user, and its result."""

    id: str
    turn: str
    machine: str
    called_mark: int
    called_at: float
    shown: int | None = None
    returned_mark: int | None = None
    returned_at: float = 0.0
    is_lost: bool = False
    settled: Settled | None = None


@dataclass(slots=True)
class StreamRecord:
    """A model request, its reply, and its end state: done, cut, transient, failed, or lost with its machine."""

    turn: str
    machine: str
    request: Request
    began_mark: int
    text: str = ""
    end: str = ""
    ended_mark: int | None = None


@dataclass(slots=True)
class ToolRun:
    """One run of a tool and its end state: finished, raised, cancelled, or lost with its machine."""

    call: str
    turn: str
    name: str
    machine: str
    began_mark: int
    text: str
    end: str = ""
    ended_mark: int | None = None


class Observations:
    """All observations made during a run. `violations` has a sentence per broken guarantee; `trace` is a log."""

    def __init__(self, session: str, vault: SharedState) -> None:
        self.session = session
        self.violations: list[str] = []
        self.records: list[CommittedRecord] = []
        self.entries: list[tuple[int, InboxEntry]] = []
        self.messages: dict[str, SentMessage] = {}
        self.stops: dict[str, StopRequest] = {}
        self.streams: list[StreamRecord] = []
        self.tools: list[ToolRun] = []
        self.notices: list[tuple[int, str, str]] = []
        self.deaths: dict[str, int] = {}
        self.closes: dict[str, int] = {}
        self.turn_of: dict[str, str] = {}
        self.started_calls: set[str] = set()
        self.trace: list[tuple[object, ...]] = []
        self._vault = vault
        self._last_mark = 0

    @property
    def owner(self) -> str:
        """The machine that owns the session, or ""."""
        return self._vault.owner(self.session)

    def next_mark(self) -> int:
        """Return the next mark, a sequence number that orders the observations."""
        self._last_mark += 1
        return self._last_mark

    def add_trace(self, at: float, *items: object) -> None:
        """Add a line to the trace."""
        self.trace.append((round(at, 6), *items))

    def add_violation(self, sentence: str) -> None:
        """Record a broken guarantee."""
        self.violations.append(sentence)

    def read_commits(self, at: float, writer: str) -> None:
        """Read newly committed entries and records, and check that only the session's owner wrote to its journal."""
        for entry in self._vault.entries(self.session, len(self.entries)):
            self.entries.append((self.next_mark(), entry))
            self.add_trace(at, writer, "inbox", entry.seq, type(entry.command).__name__, entry.command.id)
        new_records = self._vault.records(self.session, len(self.records))
        owner = self._vault.owner(self.session)
        if new_records and owner not in (writer, ""):  # the writer may have released its lease in the same commit
            self.add_violation(f"fencing: {writer} wrote {new_records[0]} while {owner} owns the session")
        for record in new_records:
            self._add_record(CommittedRecord(record, self.next_mark(), at, writer))

    def fingerprint(self) -> str:
        """Return a hash of the trace."""
        return hashlib.sha256(self.trace_text().encode()).hexdigest()[:16]

    def trace_text(self) -> str:
        """Return the trace as text."""
        return "\n".join(f"{line[0]:>12} " + " ".join(map(str, line[1:])) for line in self.trace)

    def _add_record(self, committed: CommittedRecord) -> None:
        record = committed.record
        self.records.append(committed)
        self.add_trace(committed.at, committed.writer, "record", record)
        if isinstance(record, TurnStarted | Steered):
            for message in record.messages:
                self.turn_of.setdefault(message.id, record.turn)
        elif record.__struct_config__.tag == "call.started":
            self.started_calls.add(record.call)  # type: ignore[union-attr]
