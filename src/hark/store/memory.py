"""A store in memory, shared by any number of owners in one process: for tests, and for what need not last."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from hark.protocol.clock import Clock
from hark.protocol.commands import Command
from hark.protocol.names import is_background
from hark.protocol.records import AnyRecord
from hark.protocol.store import Accepted, Entry, Hit, Journal, Lease, Query, SessionLine, Summary
from hark.store.local_bus import WakeQueue
from hark.store.rows import journal_conflict, lease_lost
from hark.store.search_text import Phrase, SearchableLine, has_phrase, lines_of, phrases, snippet, words

LEASE_SECONDS = 10.0


class _Kept:
    """What is kept of one session."""

    __slots__ = ("entries", "known", "records", "summary")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.known: dict[str, int] = {}
        self.records: list[AnyRecord] = []
        self.summary: Summary | None = None

    @property
    def has_work(self) -> bool:
        """Whether someone should look after it."""
        line = self.summary or Summary()
        return self.is_unread or line.is_open or line.is_waiting

    @property
    def is_unread(self) -> bool:
        """Whether there are entries behind the cursor."""
        return len(self.entries) > (self.summary.cursor if self.summary else 0)


class SharedMemory:
    """What several stores share, as several processes share a database."""

    def __init__(self) -> None:
        self.kept: dict[str, _Kept] = {}
        self.leases: dict[str, Lease] = {}  # stay when given up, with no owner, so that no epoch is used again
        self.expiry: dict[str, float] = {}
        self.wakes: dict[str, WakeQueue] = {}


class MemoryInbox:
    """The inbox. Nothing in it waits."""

    def __init__(self, memory: SharedMemory) -> None:
        self._kept = memory.kept

    async def put(self, session: str, command: Command) -> Accepted:
        """Accept a command, once."""
        kept = self._kept.get(session)
        if kept is None:
            kept = self._kept[session] = _Kept()
        seq = kept.known.get(command.id)
        if seq is not None:
            return Accepted(seq, is_new=False)
        seq = kept.known[command.id] = len(kept.entries) + 1
        kept.entries.append(Entry(seq, command))
        return Accepted(seq, is_new=True)

    async def after(self, session: str, seq: int) -> list[Entry]:
        """Return the entries behind `seq`, in order."""
        kept = self._kept.get(session)
        return kept.entries[seq:] if kept else []

    async def unread(self) -> list[str]:
        """Return the sessions with entries that their owner has not decided about yet."""
        return sorted(session for session, kept in self._kept.items() if kept.is_unread)

    async def unfinished(self) -> list[str]:
        """Return the sessions that have work."""
        return sorted(session for session, kept in self._kept.items() if kept.has_work)


class MemoryJournal:
    """The journal. Nothing in it waits."""

    def __init__(self, memory: SharedMemory) -> None:
        self._kept = memory.kept
        self._leases = memory.leases

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        """Append all records or none, if the lease holds and the journal has `expected` records."""
        session = lease.session
        if self._leases.get(session) != lease:
            raise lease_lost(session)
        kept = self._kept.get(session)
        if expected != (len(kept.records) if kept else 0):
            raise journal_conflict(session, expected)
        if kept is None:
            kept = self._kept[session] = _Kept()
        kept.records.extend(records)
        kept.summary = summary

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        """Return the records behind the first `after`."""
        kept = self._kept.get(session)
        return kept.records[after:] if kept else []

    async def sessions(self) -> list[SessionLine]:
        """Return all sessions, the last changed first."""
        lines = [SessionLine(session, kept.summary) for session, kept in self._kept.items() if kept.summary]
        return sorted(lines, key=lambda line: (-line.summary.updated_at, line.session))

    async def delete(self, session: str) -> bool:
        """Forget a session wholly; whoever owned it loses its lease."""
        lease = self._leases.get(session)
        if lease is not None:
            self._leases[session] = Lease(session, "", lease.epoch)
        return self._kept.pop(session, None) is not None


class MemoryLeases:
    """The leases of one owner."""

    def __init__(self, memory: SharedMemory, owner: str, clock: Clock, lease_seconds: float) -> None:
        self._leases = memory.leases
        self._expiry = memory.expiry
        self._owner = owner
        self._clock = clock
        self.seconds = lease_seconds  # how long a lease lasts without a renewal

    async def acquire(self, session: str) -> Lease | None:
        """Own a session, with a higher epoch than any before; None while another live owner has it."""
        held = self._leases.get(session, Lease(session, "", 0))
        if held.owner != self._owner and self._expiry.get(held.owner, 0.0) > self._clock.now():
            return None
        lease = self._leases[session] = Lease(session, self._owner, held.epoch + 1)
        return lease

    async def is_owned(self, session: str) -> bool:
        """Tell whether a live owner has a session."""
        held = self._leases.get(session, Lease(session, "", 0))
        return self._expiry.get(held.owner, 0.0) > self._clock.now()

    async def renew(self) -> None:
        """Say that this owner lives."""
        self.beat()

    def beat(self) -> None:
        """Say that this owner lives."""
        self._expiry[self._owner] = self._clock.now() + self.seconds

    async def release(self, lease: Lease) -> None:
        """Give a session up; a lease that is another's by now is left alone."""
        if self._leases.get(lease.session) == lease:
            self._leases[lease.session] = Lease(lease.session, "", lease.epoch)

    def leave(self) -> None:
        """Give up all sessions."""
        for session, lease in self._leases.items():
            if lease.owner == self._owner:
                self._leases[session] = Lease(session, "", lease.epoch)
        self._expiry.pop(self._owner, None)


class MemoryBus:
    """One owner's ear on the bus."""

    def __init__(self, memory: SharedMemory, owner: str) -> None:
        self._owner = owner
        self._all = memory.wakes
        self._mine = self._all[owner] = WakeQueue()

    async def wake(self, session: str) -> None:
        """Tell the other owners that a session has something new."""
        for owner, wakes in self._all.items():
            if owner != self._owner:
                wakes.add(session)

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that others woke; "" means: look at all. Ends when the bus is closed."""
        return aiter(self._mine)

    def close(self) -> None:
        """Leave the bus."""
        self._all.pop(self._owner, None)
        self._mine.close()


class MemoryStore:
    """One owner's view of a memory."""

    def __init__(self, memory: SharedMemory, owner: str, clock: Clock, lease_seconds: float = LEASE_SECONDS) -> None:
        self.inbox = MemoryInbox(memory)
        self.journal = MemoryJournal(memory)
        self.search = MemorySearch(self.journal)
        self.leases = MemoryLeases(memory, owner, clock, lease_seconds)
        self.leases.beat()
        self.bus = MemoryBus(memory, owner)

    async def close(self) -> None:
        """Let go of every lease."""
        self.leases.leave()
        self.bus.close()


class MemorySearch:
    """Reads the journals of all sessions, one after the other."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def find(self, query: Query) -> list[Hit]:
        """Return the messages with these words; with `is_any`, those with most of them first."""
        wanted = phrases(query.words)
        found: list[tuple[int, Hit]] = []
        if not wanted:
            return []
        for line in await self._journal.sessions():
            if not is_background(line.session) and query.session in ("", line.session):
                found.extend(await self._in_session(line.session, query, wanted))
                await asyncio.sleep(0)  # others may run, and a cancel comes through
        found.sort(key=lambda one: (one[0] if query.is_any else 0, one[1].at), reverse=True)
        return [hit for _, hit in found[: max(0, query.limit)]]

    async def _in_session(self, session: str, query: Query, wanted: list[Phrase]) -> list[tuple[int, Hit]]:
        hits: list[tuple[int, Hit]] = []
        for record in await self._journal.read(session):
            for line in lines_of(record):
                count = _count(line, query, wanted)
                if count >= (1 if query.is_any else len(wanted)):
                    hits.append((count, Hit(session, line.turn, line.at, line.who, snippet(line.text, wanted))))
        return hits


def _count(line: SearchableLine, query: Query, wanted: list[Phrase]) -> int:
    """Return how many of the phrases a line has, none when the query is about others."""
    if line.at < query.since or (query.without_turn and line.turn == query.without_turn):
        return 0
    kept = words(line.text)
    return sum(has_phrase(kept, phrase) for phrase in wanted)
