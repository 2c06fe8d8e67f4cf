"""Runs SQL operations in a thread, and commits several of them together before any of them returns."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from hark.protocol.store import StoreError
from hark.store.database_file import describe_location, to_store_error
from hark.store.sqlite_statements import AppendOperation

T = TypeVar("T")


class Committer(Protocol):
    """Runs operations on one connection, in the order of their submission."""

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Queue an operation immediately. Its result is set after the commit. Cancelling the wait does not cancel it.

        Raises:
            StoreError: The operation raised it, or its transaction failed and was rolled back.
        """
        ...

    async def close(self) -> None:
        """Finish the submitted operations and stop. Operations submitted later are refused."""
        ...


class PendingCommit:
    """A submitted operation with its future, and its result or error once it has run."""

    __slots__ = ("error", "future", "operation", "result")

    def __init__(self, operation: Callable[[sqlite3.Connection], Any], future: "asyncio.Future[Any]") -> None:
        self.operation = operation
        self.future = future
        self.result: Any = None
        self.error: Exception | None = None


def commit_batch(connection: sqlite3.Connection, jobs: Sequence[PendingCommit], begin_statement: str) -> None:
    """Run all jobs in one transaction and set their results. A job that raises does not affect the others."""
    try:
        connection.execute(begin_statement)
        for _, neighbours in groupby(jobs, lambda job: type(job.operation)):
            _run_jobs(connection, list(neighbours))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        location = describe_location(connection)
        for job in jobs:
            job.error = to_store_error(error, location)


def _run_jobs(connection: sqlite3.Connection, jobs: Sequence[PendingCommit]) -> None:
    """Run jobs of one type. Several appends are executed together, which costs less."""
    appends = [job.operation for job in jobs if isinstance(job.operation, AppendOperation)]
    with suppress(UnicodeError):  # the append that can't be encoded gets its own error below
        if len(appends) > 1 and AppendOperation.execute_all(connection, appends):
            return
    for job in jobs:
        try:
            job.result = job.operation(connection)
        except (StoreError, UnicodeError) as refusal:
            job.error = refusal


def resolve_futures(jobs: Sequence[PendingCommit]) -> None:
    """Set the results or errors of the futures that are still pending. Call it on their event loop."""
    for job in jobs:
        future = job.future
        if future.done():
            continue
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)


MAX_BATCH_SIZE = 512  # limits how long the first operation of a burst waits for the last


class CommitThread:
    """A Committer with its own thread. While one commit waits for the disk, the next batch is collected."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        begin_sql: str = "BEGIN IMMEDIATE",
        max_batch: int = MAX_BATCH_SIZE,
    ) -> None:
        """Start the thread. If `connect` raises a StoreError, every operation raises that error."""
        self._connect = connect
        self._begin_statement = begin_sql
        self._max_batch_size = max_batch
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[PendingCommit | None] = SimpleQueue()
        self._is_ending = False  # used only by the thread
        self._refusal: StoreError | None = None  # used only by the loop, like the attributes below
        self._ended = asyncio.Event()
        self._thread = Thread(target=self._run, name="hark-store", daemon=True)
        self._thread.start()

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Queue an operation immediately. Its result is set after the commit."""
        if self._refusal is not None:
            raise self._refusal
        job = PendingCommit(operation, self._loop.create_future())
        self._queue.put(job)
        return job.future

    async def close(self) -> None:
        """Wait until all submitted operations are committed and the connection is closed. Has no time limit."""
        if self._refusal is None:
            self._refusal = closed_error()
            self._queue.put(None)
        await self._ended.wait()
        self._thread.join()  # the thread's last action was to set the event

    def _run(self) -> None:
        jobs: list[PendingCommit] = []
        refusal = StoreError("The store's thread crashed. Restart Hark.")
        try:
            with closing(self._connect()) as connection:
                while not self._is_ending:
                    jobs = self._next_batch()
                    commit_batch(connection, jobs, self._begin_statement)
                    self._call_on_loop(resolve_futures, jobs)
            refusal = closed_error()
        except StoreError as error:
            refusal = error
        finally:
            self._call_on_loop(self._finish, jobs, refusal)

    def _next_batch(self) -> list[PendingCommit]:
        jobs: list[PendingCommit] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == self._max_batch_size:
                return jobs
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs
        self._is_ending = True
        return jobs

    def _call_on_loop(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop is closed, and no caller waits any more
            self._is_ending = True

    def _finish(self, jobs: list[PendingCommit], refusal: StoreError) -> None:
        # On the loop, like `submit`, so no operation can be queued between the last check and the refusal.
        self._refusal = refusal
        while not self._queue.empty():
            if (job := self._queue.get()) is not None:
                jobs.append(job)
        for job in jobs:
            job.error = refusal
        resolve_futures(jobs)
        self._ended.set()


def closed_error() -> StoreError:
    """Return the error for operations on a closed store."""
    return StoreError("The store is closed. Open it again to continue.")
