"""A committer without a thread, for simulations and for tests with an in-memory database."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hark.protocol.store import StoreError
from hark.store.commit_thread import PendingCommit, closed_error, commit_batch, resolve_futures

T = TypeVar("T")


class InlineCommitter:
    """Runs operations on the caller's loop without a thread."""

    def __init__(
        self, connection: sqlite3.Connection, before_commit: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`before_commit` is awaited before each commit. Operations submitted until it returns are in that commit.

        `before_commit` may raise a StoreError to simulate a failing disk, which fails the whole commit.
        """
        self._connection = connection
        self._before_commit = before_commit
        self._pending: list[PendingCommit] = []
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def submit(self, operation: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Queue an operation immediately. Its result is available after the commit."""
        if self._is_closed:
            raise closed_error()
        loop = asyncio.get_running_loop()
        job = PendingCommit(operation, loop.create_future())
        self._pending.append(job)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._commit_all())
        return job.future

    async def close(self) -> None:
        """Finish the submitted operations. The connection remains open for its creator to close."""
        self._is_closed = True
        if self._task is not None:
            await self._task

    async def _commit_all(self) -> None:
        while self._pending:
            failure: StoreError | None = None
            if self._before_commit is not None:
                try:
                    await self._before_commit()
                except StoreError as error:
                    failure = error
            jobs, self._pending = self._pending, []
            if failure is None:
                commit_batch(self._connection, jobs, "BEGIN IMMEDIATE")
            else:
                for job in jobs:
                    job.error = failure
            resolve_futures(jobs)
