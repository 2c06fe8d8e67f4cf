"""A committer without a thread: for a simulation, and for tests on a database in memory."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hark.protocol.store import StoreError
from hark.store.committer import PendingCommit, answer, closed, commit_together

T = TypeVar("T")


class InlineCommitter:
    """Runs operations on the caller's own loop, with no thread: for a simulation on a database in memory."""

    def __init__(
        self, connection: sqlite3.Connection, before_commit: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`before_commit` is awaited before each commit; what was submitted until it returns is in that commit.

        It may raise a StoreError, as a disk would: then nothing of that commit is made.
        """
        self._connection = connection
        self._before_commit = before_commit
        self._waiting: list[PendingCommit] = []
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Take an operation at once; the answer comes after its commit."""
        if self._is_closed:
            raise closed()
        loop = asyncio.get_running_loop()
        job = PendingCommit(operation, loop.create_future())
        self._waiting.append(job)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._commit_all())
        return job.future

    async def close(self) -> None:
        """Finish what was submitted; the connection stays its maker's."""
        self._is_closed = True
        if self._task is not None:
            await self._task

    async def _commit_all(self) -> None:
        while self._waiting:
            failure: StoreError | None = None
            if self._before_commit is not None:
                try:
                    await self._before_commit()
                except StoreError as error:
                    failure = error
            jobs, self._waiting = self._waiting, []
            if failure is None:
                commit_together(self._connection, jobs, "BEGIN IMMEDIATE")
            else:
                for job in jobs:
                    job.error = failure
            answer(jobs)
