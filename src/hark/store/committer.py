"""The seam between SQL and threads: operations go in, and are committed together before any of them is answered."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from hark.protocol.store import StoreError
from hark.store.database_file import explain, place_of
from hark.store.rows import Append

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
    """Run jobs of one kind; appends cost less when they are done together."""
    appends = [job.operation for job in jobs if isinstance(job.operation, Append)]
    with suppress(UnicodeError):  # one of them is told of it below
        if len(appends) > 1 and Append.together(connection, appends):
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


WRITE_LIMIT = 512  # bounds how long the first of a burst waits for the last


class CommitThread:
    """A Committer of its own thread. While one commit waits for the disk, the next gathers."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], begin: str = "BEGIN IMMEDIATE", limit: int = WRITE_LIMIT
    ) -> None:
        """Start at once, on the running loop. If `connect` raises a StoreError, every operation is refused with it."""
        self._connect = connect
        self._begin = begin
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[PendingCommit | None] = SimpleQueue()
        self._is_ending = False  # of the thread
        self._refusal: StoreError | None = None  # of the loop, and everything below too
        self._ended = asyncio.Event()
        self._thread = Thread(target=self._run, name="hark-store", daemon=True)
        self._thread.start()

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Take an operation at once; the answer comes after its commit."""
        if self._refusal is not None:
            raise self._refusal
        job = PendingCommit(operation, self._loop.create_future())
        self._queue.put(job)
        return job.future

    async def close(self) -> None:
        """Return when all that was submitted is committed and the connection is closed; bounded by the caller."""
        if self._refusal is None:
            self._refusal = closed()
            self._queue.put(None)
        await self._ended.wait()
        self._thread.join()  # its last act was to say that it ended

    def _run(self) -> None:
        jobs: list[PendingCommit] = []
        refusal = StoreError("The store's thread broke down. Start Hark again.")
        try:
            with closing(self._connect()) as connection:
                while not self._is_ending:
                    jobs = self._take()
                    commit_together(connection, jobs, self._begin)
                    self._tell(answer, jobs)
            refusal = closed()
        except StoreError as error:
            refusal = error
        finally:
            self._tell(self._end, jobs, refusal)

    def _take(self) -> list[PendingCommit]:
        jobs: list[PendingCommit] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == self._limit:
                return jobs
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs
        self._is_ending = True
        return jobs

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop is gone, and all who waited with it
            self._is_ending = True

    def _end(self, jobs: list[PendingCommit], refusal: StoreError) -> None:
        # On the loop, like submit: nothing can slip in between the last look at the queue and the refusal.
        self._refusal = refusal
        while not self._queue.empty():
            if (job := self._queue.get()) is not None:
                jobs.append(job)
        for job in jobs:
            job.error = refusal
        answer(jobs)
        self._ended.set()


def closed() -> StoreError:
    """Return the error for work that comes after the end."""
    return StoreError("The store is closed. Open it again to go on.")
