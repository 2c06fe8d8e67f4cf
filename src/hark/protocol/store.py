"""The ports to durable storage: inbox, journal, search, leases, and the bus between processes."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct

from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord


class StoreError(Exception):
    """The store could not complete a request. The text says what to do about it."""


class StoreUnusable(StoreError):
    """The database is corrupt, newer than this program, or unreachable. It was not changed."""


class LeaseLost(StoreError):
    """Another process owns the session now; this one must not write to it again."""


class JournalConflict(StoreError):
    """The journal has a different length than the writer expected. Nothing was written."""


class InboxEntry(Struct, frozen=True):
    """A command in an inbox. `seq` counts from 1 without gaps within a session."""

    seq: int
    command: Command


class PutResult(Struct, frozen=True):
    """The result of `Inbox.put`: the command's position, and whether it was new."""

    seq: int
    is_new: bool


class Lease(Struct, frozen=True):
    """The right to own a session. A higher epoch invalidates all lower ones."""

    session: str
    owner: str
    epoch: int


class SessionSummary(Struct, frozen=True, omit_defaults=True):
    """A short summary of a session, stored with its journal and updated by every append."""

    cursor: int = 0
    is_open: bool = False
    is_waiting: bool = False
    turns: int = 0
    title: str = ""
    updated_at: float = 0.0


class SessionListEntry(Struct, frozen=True):
    """A session in a list: its name and summary."""

    session: str
    summary: SessionSummary


class SearchQuery(Struct, frozen=True):
    """A search in past sessions, for messages that contain all of the words, or with `is_any` at least one.

    `words` are separated by spaces and matched literally, also as the prefix of a longer word. `since` is Unix time.
    """

    words: str
    session: str = ""
    since: float = 0.0
    limit: int = 10
    is_any: bool = False
    without_turn: str = ""


class SearchHit(Struct, frozen=True):
    """A message found by a search: its author `who`, and the text around the first match."""

    session: str
    turn: str
    at: float
    who: str
    snippet: str


class Search(Protocol):
    """Full-text search in the messages of all sessions, except background sessions."""

    async def find(self, query: SearchQuery) -> list[SearchHit]:
        """Return the hits, newest first; with `is_any`, best first if the store can rank them.

        When a turn has ended, all its messages can be found. Any text is a valid query; a query without words finds
        nothing. Cancelling takes effect immediately, and the next search resumes indexing where this one stopped.

        Raises:
            StoreError: The sessions can't be read.
        """
        ...


class Inbox(Protocol):
    """The accepted commands of all sessions, in order. Any process may add commands."""

    async def put(self, session: str, command: Command) -> PutResult:
        """Accept a command durably. The same id in the same session is accepted only once, ever.

        If the call is cancelled while it waits, the command may still have been accepted.
        """
        ...

    async def entries_after(self, session: str, seq: int) -> list[InboxEntry]:
        """Return the entries after `seq`, in order."""
        ...

    async def unread_sessions(self) -> list[str]:
        """Return the sessions with entries that their owner has not processed yet."""
        ...

    async def unfinished_sessions(self) -> list[str]:
        """Return the sessions with pending work: unprocessed entries, an open turn, or a queue that is not held."""
        ...


class Journal(Protocol):
    """The durable records of all sessions. Only a session's owner writes its records."""

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: SessionSummary) -> None:
        """Append all records or none, durably, if the lease holds and the journal has `expected` records.

        Appends are made in the order of the calls, even when a caller doesn't wait for the previous one. If the call
        is cancelled while it waits, the append is still made.

        Raises:
            LeaseLost: Another process owns the session now.
            JournalConflict: The journal has more or fewer records than expected.
        """
        ...

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        """Return the records after the first `after`. An unknown session has none."""
        ...

    async def sessions(self) -> list[SessionListEntry]:
        """Return all sessions, the most recently changed first."""
        ...

    async def delete(self, session: str) -> bool:
        """Delete a session completely. Return False if it does not exist."""
        ...


class Leases(Protocol):
    """Records which process owns which session."""

    @property
    def seconds(self) -> float:
        """How long a lease lasts without a renewal."""
        ...

    async def acquire(self, session: str) -> Lease | None:
        """Acquire a session with a higher epoch than ever before. Return None while another live process owns it."""
        ...

    async def is_owned(self, session: str) -> bool:
        """Return whether a live process owns a session."""
        ...

    async def renew(self) -> None:
        """Renew all leases of this process."""
        ...

    async def release(self, lease: Lease) -> None:
        """Release the lease. Does nothing if another process holds it."""
        ...


class Bus(Protocol):
    """Advisory wake-ups between processes. They may be lost or duplicated; correctness never depends on them."""

    async def wake(self, session: str) -> None:
        """Notify the other processes that a session has changed. Never waits for them, never raises."""
        ...

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that other processes woke. "" means that all sessions must be checked."""
        ...


class Store(Protocol):
    """The storage of sessions."""

    @property
    def inbox(self) -> Inbox:
        """The inbox of all sessions."""
        ...

    @property
    def journal(self) -> Journal:
        """The journal of all sessions."""
        ...

    @property
    def search(self) -> Search:
        """Full-text search in all sessions."""
        ...

    @property
    def leases(self) -> Leases:
        """The leases of all sessions."""
        ...

    @property
    def bus(self) -> Bus:
        """The wake-up bus between processes."""
        ...

    async def close(self) -> None:
        """Finish accepted writes and release all leases. Takes a bounded time."""
        ...
