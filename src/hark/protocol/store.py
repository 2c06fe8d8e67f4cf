"""The ports to what lasts: inbox, journal, search, leases and the bus between processes."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct

from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord


class StoreError(Exception):
    """The store can't do what it was asked; the text says what to do about it."""


class StoreUnusable(StoreError):
    """The database is corrupt, newer than this program, or out of reach. It was not changed."""


class LeaseLost(StoreError):
    """Another process owns the session now: this one must not write to it again."""


class JournalConflict(StoreError):
    """The journal does not end where the writer thought it ends. Nothing was written."""


class Entry(Struct, frozen=True):
    """A command in an inbox. `seq` counts from 1 without gaps within a session."""

    seq: int
    command: Command


class Accepted(Struct, frozen=True):
    """The answer to a put: where the command is, and whether it was new."""

    seq: int
    is_new: bool


class Lease(Struct, frozen=True):
    """The right to own a session. A higher epoch fences all lower ones."""

    session: str
    owner: str
    epoch: int


class Summary(Struct, frozen=True, omit_defaults=True):
    """A session in one line, kept beside its journal by whoever appends."""

    cursor: int = 0
    is_open: bool = False
    is_waiting: bool = False
    turns: int = 0
    title: str = ""
    updated_at: float = 0.0


class SessionLine(Struct, frozen=True):
    """A session in a list."""

    session: str
    summary: Summary


class Query(Struct, frozen=True):
    """What to look for in past sessions: messages that have all the words, or with `is_any` one of them at least.

    What stands between blanks is found as it is, as the beginning of a longer word too. `since` is Unix time.
    """

    words: str
    session: str = ""
    since: float = 0.0
    limit: int = 10
    is_any: bool = False
    without_turn: str = ""


class Hit(Struct, frozen=True):
    """A message that was found: `who` said it, and the part of it around the first word."""

    session: str
    turn: str
    at: float
    who: str
    snippet: str


class Search(Protocol):
    """Full-text search of what was said in turns, in all sessions but those behind the scenes."""

    async def find(self, query: Query) -> list[Hit]:
        """Return the newest first; with `is_any` the best first, as far as the store can tell.

        Nothing that a turn said before its end is missing after it. No text is a wrong query; one without words finds
        nothing. Cancelling takes effect at once, and the next search goes on with what was indexed until then.

        Raises:
            StoreError: The sessions can't be read.
        """
        ...


class Inbox(Protocol):
    """The accepted commands of all sessions, in order, put there by anyone."""

    async def put(self, session: str, command: Command) -> Accepted:
        """Accept a command, durably. The same id in the same session is accepted once, ever.

        A put that was cancelled while it waited may still have been accepted.
        """
        ...

    async def after(self, session: str, seq: int) -> list[Entry]:
        """Return the entries behind `seq`, in order."""
        ...

    async def unread(self) -> list[str]:
        """Return the sessions with entries that their owner has not decided about yet."""
        ...

    async def unfinished(self) -> list[str]:
        """Return the sessions that have work: entries behind their cursor, an open turn, or a queue that may run."""
        ...


class Journal(Protocol):
    """The durable records of all sessions, each written by its one owner."""

    async def append(self, lease: Lease, expected: int, records: Sequence[AnyRecord], summary: Summary) -> None:
        """Append all records or none, durably, if the lease holds and the journal has `expected` records.

        The order of calls is the order of appends, even when a caller doesn't wait for the one before. An append that
        was cancelled while it waited is still made.

        Raises:
            LeaseLost: The lease is another's by now.
            JournalConflict: The journal has more or fewer records.
        """
        ...

    async def read(self, session: str, after: int = 0) -> list[AnyRecord]:
        """Return the records behind the first `after`; an unknown session has none."""
        ...

    async def sessions(self) -> list[SessionLine]:
        """Return all sessions, the last changed first."""
        ...

    async def delete(self, session: str) -> bool:
        """Forget a session wholly; False when there was none."""
        ...


class Leases(Protocol):
    """Who owns which session."""

    @property
    def seconds(self) -> float:
        """How long a lease lasts without a renewal."""
        ...

    async def acquire(self, session: str) -> Lease | None:
        """Own a session, with a higher epoch than any before; None while another live owner has it."""
        ...

    async def is_owned(self, session: str) -> bool:
        """Tell whether a live process owns a session."""
        ...

    async def renew(self) -> None:
        """Say that this process lives; all its leases go on."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give a session up. A lease that is another's by now is left alone."""
        ...


class Bus(Protocol):
    """Advisory wakes between processes: may be lost or doubled, never needed for truth."""

    async def wake(self, session: str) -> None:
        """Tell the other processes that a session has something new. Never waits for them, never raises."""
        ...

    def wakes(self) -> AsyncIterator[str]:
        """Yield the sessions that others woke; "" means: look at all."""
        ...


class Store(Protocol):
    """One place where sessions live."""

    @property
    def inbox(self) -> Inbox:
        """Its inbox."""
        ...

    @property
    def journal(self) -> Journal:
        """Its journal."""
        ...

    @property
    def search(self) -> Search:
        """Its search."""
        ...

    @property
    def leases(self) -> Leases:
        """Its leases."""
        ...

    @property
    def bus(self) -> Bus:
        """Its bus."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of every lease; bounded in time."""
        ...
