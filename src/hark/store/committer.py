"""The seam between SQL and threads: operations go in, and are committed together before any of them is answered."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Protocol, TypeVar, runtime_checkable

from hark.protocol.store import StoreError
from hark.store.failures import explain, place_of

T = TypeVar("T")


class Committer(Protocol):
    """Runs operations on one connection, in the order of their submission."""

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Take an operation at once; the answer comes after its commit. Cancelling the wait doesn't undo it.

        Raises:
            StoreError: Raised by the operation, or its whole transaction failed and nothing of it is in the database.
        """
        ...

    async def close(self) -> None:
        """Finish what was submitted and end; what is submitted later is refused."""
        ...


@runtime_checkable
class Gathered(Protocol):
    """An operation that costs less when it is done together with its neighbours of the same kind."""

    def __call__(self, connection: sqlite3.Connection) -> None:
        """Do it alone."""
        ...

    @staticmethod
    def together(connection: sqlite3.Connection, operations: Sequence[Any]) -> bool:
        """Do them all and return True, or do nothing and return False: then each is done alone."""
        ...


class PendingCommit:
    """An operation on its way to a commit, with the future of whoever waits."""

    __slots__ = ("error", "future", "operation", "result")

    def __init__(self, operation: Callable[[sqlite3.Connection], Any], future: "asyncio.Future[Any]") -> None:
        self.operation = operation
        self.future = future
        self.result: Any = None
        self.error: Exception | None = None


def commit_together(connection: sqlite3.Connection, jobs: Sequence[PendingCommit], begin: str) -> None:
    """Run all jobs in one transaction and note their results; one that refuses takes nothing from the others."""
    try:
        connection.execute(begin)
        for _, neighbours in groupby(jobs, lambda job: type(job.operation)):
            _do(connection, list(neighbours))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        place = place_of(connection)
        for job in jobs:
            job.error = explain(error, place)


def _do(connection: sqlite3.Connection, jobs: Sequence[PendingCommit]) -> None:
    first = jobs[0].operation
    with suppress(UnicodeError):  # one of them is told of it below
        if (
            len(jobs) > 1
            and isinstance(first, Gathered)
            and first.together(connection, [job.operation for job in jobs])
        ):
            return
    for job in jobs:
        try:
            job.result = job.operation(connection)
        except (StoreError, UnicodeError) as refusal:
            job.error = refusal


def answer(jobs: Sequence[PendingCommit]) -> None:
    """Tell all who still wait; to be called on their loop."""
    for job in jobs:
        future = job.future
        if future.done():
            continue
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)


def closed() -> StoreError:
    """Return the error for work that comes after the end."""
    return StoreError("The store is closed. Open it again to go on.")
