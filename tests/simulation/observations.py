"""What was seen from outside a run: all that is checked afterwards, each with the mark of its moment."""

import hashlib
from dataclasses import dataclass, field

from hark.protocol.commands import Delivery
from hark.protocol.provider import Request
from hark.protocol.receipts import Receipt, Settled
from hark.protocol.records import AnyRecord, Steered, TurnStarted
from hark.protocol.store import Entry
from tests.simulation.storage import Vault


@dataclass(slots=True)
class Committed:
    """A record in the journal: when, and by whose commit."""

    record: AnyRecord
    mark: int
    at: float
    writer: str


@dataclass(slots=True)
class Posted:
    """A message of a person: all tries to deliver it, and what they were told."""

    id: str
    text: str
    delivery: Delivery
    called: int
    receipts: list[tuple[int, Receipt]] = field(default_factory=list[tuple[int, Receipt]])


@dataclass(slots=True)
class Stopped:
    """A stop that a person asked for, and its answer."""

    id: str
    turn: str
    machine: str
    called: int
    called_at: float
    shown: int | None = None
    returned: int | None = None
    returned_at: float = 0.0
    is_lost: bool = False
    settled: Settled | None = None


@dataclass(slots=True)
class Streamed:
    """A request at the model, what it said, and how it ended: done, cut, transient, failed, or with its machine."""

    turn: str
    machine: str
    request: Request
    began: int
    text: str = ""
    end: str = ""
    ended: int | None = None


@dataclass(slots=True)
class ToolRun:
    """A tool at work: finished, raised or cancelled, or lost with its machine."""

    call: str
    turn: str
    name: str
    machine: str
    began: int
    text: str
    end: str = ""
    ended: int | None = None


class Ledger:
    """Keeps what was seen. `violations` are sentences; the trace is the run, line by line."""

    def __init__(self, session: str, vault: Vault) -> None:
        self.session = session
        self.violations: list[str] = []
        self.records: list[Committed] = []
        self.entries: list[tuple[int, Entry]] = []
        self.posted: dict[str, Posted] = {}
        self.stops: dict[str, Stopped] = {}
        self.streams: list[Streamed] = []
        self.tools: list[ToolRun] = []
        self.notices: list[tuple[int, str, str]] = []
        self.deaths: dict[str, int] = {}
        self.closes: dict[str, int] = {}
        self.turn_of: dict[str, str] = {}
        self.started_calls: set[str] = set()
        self.trace: list[tuple[object, ...]] = []
        self._vault = vault
        self._marks = 0

    def mark(self) -> int:
        """Return the number of this moment; later ones have higher numbers."""
        self._marks += 1
        return self._marks

    def note(self, at: float, *what: object) -> None:
        """Add a line to the trace."""
        self.trace.append((round(at, 6), *what))

    def violate(self, sentence: str) -> None:
        """A promise is broken."""
        self.violations.append(sentence)

    def catch_up(self, at: float, writer: str) -> None:
        """Look at what has just been committed. Only the session's owner may have written to its journal."""
        for entry in self._vault.entries(self.session, len(self.entries)):
            self.entries.append((self.mark(), entry))
            self.note(at, writer, "inbox", entry.seq, type(entry.command).__name__, entry.command.id)
        news = self._vault.records(self.session, len(self.records))
        owner = self._vault.owner(self.session)
        if news and owner not in (writer, ""):  # it may have let go in the same commit
            self.violate(f"fencing: {writer} wrote {news[0]} while {owner} owns the session")
        for record in news:
            self._keep(Committed(record, self.mark(), at, writer))

    def digest(self) -> str:
        """Return the run's fingerprint."""
        return hashlib.sha256(self.story().encode()).hexdigest()[:16]

    def story(self) -> str:
        """Return the run, line by line."""
        return "\n".join(f"{line[0]:>12} " + " ".join(map(str, line[1:])) for line in self.trace)

    def _keep(self, committed: Committed) -> None:
        record = committed.record
        self.records.append(committed)
        self.note(committed.at, committed.writer, "record", record)
        if isinstance(record, TurnStarted | Steered):
            for message in record.messages:
                self.turn_of.setdefault(message.id, record.turn)
        elif record.__struct_config__.tag == "call.started":
            self.started_calls.add(record.call)  # type: ignore[union-attr]
