"""A store in memory, shared by any number of owners in one process, for tests and temporary sessions."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from hark.protocol.clock import Clock
from hark.protocol.commands import Command
from hark.protocol.names import is_background
from hark.protocol.records import AnyRecord
from hark.protocol.store import (
    InboxEntry,
    Journal,
    Lease,
    PutResult,
    SearchHit,
    SearchQuery,
    SessionListEntry,
    SessionSummary,
)
from hark.store.local_bus import WakeQueue
from hark.store.search_text import (
    Phrase,
    SearchableMessage,
    extract_messages,
    has_phrase,
    make_snippet,
    parse_phrases,
    split_words,
)
from hark.store.sqlite_statements import journal_conflict_error, lease_lost_error

LEASE_SECONDS = 10.0


class _StoredSession:
    """The inbox entries, records and summary of one session."""

    __slots__ = ("entries", "records", "seq_by_id", "summary")

    def __init__(self) -> None:
        self.entries: list[InboxEntry] = []
        self.seq_by_id: dict[str, int] = {}
        self.records: list[AnyRecord] = []
        self.summary: SessionSummary | None = None

    @property
    def has_work(self) -> bool:
        """Whether an owner should load the session."""
        summary = self.summary or SessionSummary()
        return self.is_unread or summary.is_open or summary.is_waiting

    @property
    def is_unread(self) -> bool:
        """Whether there are entries after the cursor."""
        return len(self.entries) > (self.summary.cursor if self.summary else 0)


class SharedMemory:
    """The state that several stores share, as several processes share a database."""

    def __init__(self) -> None:
        self.sessions: dict[str, _StoredSession] = {}
        self.leases: dict[str, Lease] = {}  # released leases remain without an owner, so that no epoch is reused
        self.expires_at: dict[str, float] = {}
        self.wakes: dict[str, WakeQueue] = {}


class MemoryInbox:
    """An inbox in memory. Its methods return without waiting."""

    def __init__(self, memory: SharedMemory) -> None:
        self._sessions = memory.sessions

    async def put(self, session: str, command: Command) -> PutResult:
        """Accept a command. The same id is accepted only once."""
        stored = self._sessions.get(session)
        if stored is None:
            stored = self._sessions[session] = _StoredSession()
        seq = stored.seq_by_id.get(command.id)
        if seq is not None:
            return PutResult(seq, is_new=False)
        seq = stored.seq_by_id[command.id] = len(stored.entries) + 1
        stored.entries.append(InboxEntry(seq, command))
        return PutResult(seq, is_new=True)

    async def entries_after(self, session: str, seq: int) -> list[InboxEntry]:
        """Return the entries after `seq`, in order."""
        stored = self._sessions.get(session)
        return stored.entries[seq:] if stored else []

    async def unread_sessions(self) -> list[str]:
        """Return the sessions with entries that their owner has not processed yet."""
        return sorted(session for session, stored in self._sessions.items() if stored.is_unread)

    async def unfinished_sessions(self) -> list[str]:
        """Return the sessions with pending work."""
        return sorted(session for session, stored in self._sessions.items() if stored.has_work)


class MemoryJournal:
    """A journal in memory. Its methods return without waiting."""

    def __init__(self, memory: SharedMemory) -> None:
        self._sessions = memory.sessions
        self._leases = memory.leases

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        """Append all records or none, if the lease holds and the journal has `expected` records."""
        session = lease.session
        if self._leases.get(session) != lease:
            raise lease_lost_error(session)
        stored = self._sessions.get(session)
        if expected != (len(stored.records) if stored else 0):
            raise journal_conflict_error(session, expected)
        if stored is None:
            stored = self._sessions[session] = _StoredSession()
        stored.records.extend(records)
        stored.summary = summary

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        """Return all records except the first `after`."""
        stored = self._sessions.get(session)
        return stored.records[after:] if stored else []

    async def sessions(self) -> list[SessionListEntry]:
        """Return all sessions, the most recently changed first."""
        entries = [SessionListEntry(name, stored.summary) for name, stored in self._sessions.items() if stored.summary]
        return sorted(entries, key=lambda entry: (-entry.summary.updated_at, entry.session))

    async def delete(self, session: str) -> bool:
        """Delete a session completely, and revoke its lease."""
        lease = self._leases.get(session)
        if lease is not None:
            self._leases[session] = Lease(session, "", lease.epoch)
        return self._sessions.pop(session, None) is not None


class MemoryLeases:
    """One owner's leases in memory."""

    def __init__(self, memory: SharedMemory, owner: str, clock: Clock, lease_seconds: float) -> None:
        self._leases = memory.leases
        self._expires_at = memory.expires_at
        self._owner = owner
        self._clock = clock
        self.seconds = lease_seconds  # how long a lease lasts without a renewal

    async def acquire(self, session: str) -> Lease | None:
        """Acquire a session with a higher epoch than ever before. Return None while another live owner has it."""
        current = self._leases.get(session, Lease(session, "", 0))
        if current.owner != self._owner and self._expires_at.get(current.owner, 0.0) > self._clock.now():
            return None
        lease = self._leases[session] = Lease(session, self._owner, current.epoch + 1)
        return lease

    async def is_owned(self, session: str) -> bool:
        """Return whether a live owner has the session."""
        current = self._leases.get(session, Lease(session, "", 0))
        return self._expires_at.get(current.owner, 0.0) > self._clock.now()

    async def renew(self) -> None:
        """Renew all leases of this owner."""
        self.renew_now()

    def renew_now(self) -> None:
        """Renew all leases of this owner, synchronously."""
        self._expires_at[self._owner] = self._clock.now() + self.seconds

    async def release(self, lease: Lease) -> None:
        """Release the lease. Does nothing if another owner holds it."""
        if self._leases.get(lease.session) == lease:
            self._leases[lease.session] = Lease(lease.session, "", lease.epoch)

    def release_all(self) -> None:
        """Release all leases of this owner."""
        for session, lease in self._leases.items():
            if lease.owner == self._owner:
                self._leases[session] = Lease(session, "", lease.epoch)
        self._expires_at.pop(self._owner, None)


class MemoryBus:
    """One owner's connection to a bus in memory."""

    def __init__(self, memory: SharedMemory, owner: str) -> None:
        self._owner = owner
        self._queues = memory.wakes
        self._queue = self._queues[owner] = WakeQueue()

    async def wake(self, session: str) -> None:
        """Notify the other owners that a session has changed."""
        for owner, queue in self._queues.items():
            if owner != self._owner:
                queue.add(session)

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that others woke; "" stands for all sessions. Ends when the bus is closed."""
        return aiter(self._queue)

    def close(self) -> None:
        """Disconnect from the bus and end `wakes`."""
        self._queues.pop(self._owner, None)
        self._queue.close()


class MemoryStore:
    """A store for one owner, in memory that it shares with other owners."""

    def __init__(self, memory: SharedMemory, owner: str, clock: Clock, lease_seconds: float = LEASE_SECONDS) -> None:
        self.inbox = MemoryInbox(memory)
        self.journal = MemoryJournal(memory)
        self.search = MemorySearch(self.journal)
        self.leases = MemoryLeases(memory, owner, clock, lease_seconds)
        self.leases.renew_now()
        self.bus = MemoryBus(memory, owner)

    async def close(self) -> None:
        """Release all leases and close the bus."""
        self.leases.release_all()
        self.bus.close()


class MemorySearch:
    """Searches the journals of all sessions one after another, without an index."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def find(self, query: SearchQuery) -> list[SearchHit]:
        """Return the messages with these words. With `is_any`, messages with the most matches come first."""
        wanted = parse_phrases(query.words)
        matches: list[tuple[int, SearchHit]] = []
        if not wanted:
            return []
        for entry in await self._journal.sessions():
            if not is_background(entry.session) and query.session in ("", entry.session):
                matches.extend(await self._search_session(entry.session, query, wanted))
                await asyncio.sleep(0)  # let other tasks run, and let a cancel take effect
        matches.sort(key=lambda match: (match[0] if query.is_any else 0, match[1].at), reverse=True)
        return [hit for _, hit in matches[: max(0, query.limit)]]

    async def _search_session(
        self, session: str, query: SearchQuery, wanted: list[Phrase]
    ) -> list[tuple[int, SearchHit]]:
        hits: list[tuple[int, SearchHit]] = []
        for record in await self._journal.read(session):
            for message in extract_messages(record):
                count = _count_matches(message, query, wanted)
                if count >= (1 if query.is_any else len(wanted)):
                    snippet = make_snippet(message.text, wanted)
                    hits.append((count, SearchHit(session, message.turn, message.at, message.who, snippet)))
        return hits


def _count_matches(message: SearchableMessage, query: SearchQuery, wanted: list[Phrase]) -> int:
    """Return the number of phrases in a message, or 0 if the query excludes the message."""
    if message.at < query.since or (query.without_turn and message.turn == query.without_turn):
        return 0
    found = split_words(message.text)
    return sum(has_phrase(found, phrase) for phrase in wanted)
