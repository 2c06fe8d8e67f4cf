"""Undo: stores files before a step may change them, and restores them at the user's request."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import anyio

from hark.protocol.snapshots import StepId, UndoRefused, UndoResult
from hark.tools.undo.scan import ScanCancelled, ScanLimits
from hark.tools.undo.undo_store import UndoExtent, UndoStore

SLACK_SECONDS = 1.0  # for the disk and the lock, beyond the limits of this scan and of one in progress
CLOSE_SECONDS = 0.9
IDLE_SECONDS = 1.0


class _Job:
    """A job for the undo thread. `stop` is set when no caller is waiting for the result any more."""

    def __init__(self, work: Callable[[Event], Any]) -> None:
        self._work = work
        self.stop = Event()
        self.result: Future[Any] = Future()
        self.result.set_running_or_notify_cancel()  # so that cancelling the awaiting task doesn't cancel the future

    def run(self) -> None:
        try:
            self.result.set_result(None if self.stop.is_set() else self._work(self.stop))
        except UndoRefused as error:
            self.result.set_exception(error)
        except (ScanCancelled, OSError):
            self.reject()  # no caller waits for a cancelled job, and failed housekeeping needs no report
        except BaseException:
            self.reject()
            raise

    def reject(self) -> None:
        self.result.set_exception(_closed_error())


class Undo:
    """Takes snapshots before steps and restores files from them. Neither needs nor touches git.

    One daemon thread does all the work in order. So the end of a step is recorded before the next step begins, and
    neither the event loop nor the exit is blocked.
    """

    def __init__(self, folder: Path, limits: ScanLimits | None = None) -> None:
        """Start crash recovery in the background. The first step creates the store's folder.

        Needs a running event loop.
        """
        self._limits = limits or ScanLimits()
        self._store = UndoStore(folder, self._limits)
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._ended = asyncio.Event()
        self._thread = Thread(target=self._run_thread, name="hark-undo", daemon=True)
        self._thread.start()
        self._queue.put(_Job(lambda _: self._store.recover()))

    async def save_before_step(self, step: StepId, workspace: Path, writes: Sequence[str] | None) -> None:
        """Store the files that the step may change. Return when the step may begin, or after a time limit."""

        def take_snapshot(stop: Event) -> None:
            try:
                self._store.begin_step(step, workspace, writes, stop)
            except OSError as error:
                self._store.record_failure(step, error)

        limit_seconds = self._limits.seconds * 2 + SLACK_SECONDS
        with suppress(UndoRefused), anyio.move_on_after(limit_seconds) as scope:
            await self._run_job(take_snapshot)
            return
        if scope.cancelled_caught and not self._is_closed:
            late = TimeoutError(f"the disk did not respond within {limit_seconds:.0f} s")
            self._queue.put(_Job(lambda _: self._store.record_failure(step, late)))

    def finish_step(self, step: StepId, notes: Sequence[str] = ()) -> None:
        """Enqueue a job that records the step's changes. The job runs before any later `save_before_step`.

        A file that changes between this call and the job is not the step's: undo refuses to overwrite it.
        """

        ended_at_ns = time.time_ns()

        def record_changes(_: Event) -> None:
            try:
                self._store.end_step(step, notes, ended_at_ns)
            except OSError as error:
                self._store.record_failure(step, error)

        if not self._is_closed:
            self._queue.put(_Job(record_changes))

    async def undo(self, session: str, *, only_step: bool = False, since: str = "") -> UndoResult:
        """Undo the last turn or step. Cancelling has no effect once the first file is changed."""
        extent = UndoExtent(only_step, since)
        return await self._run_job(lambda stop: self._store.undo(session, extent, stop))

    async def close(self) -> None:
        """Finish the work in progress, within a second. Unfinished work is completed at the next start."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._ended.wait()

    async def _run_job(self, work: Callable[[Event], Any]) -> Any:
        if self._is_closed:
            raise _closed_error()
        job = _Job(work)
        self._queue.put(job)
        try:
            return await asyncio.wrap_future(job.result)
        finally:
            job.stop.set()

    def _run_thread(self) -> None:
        is_cleaned_up = False
        try:
            while True:
                try:
                    job = self._queue.get(timeout=None if is_cleaned_up else IDLE_SECONDS)
                except Empty:
                    is_cleaned_up = True
                    job = _Job(lambda _: self._store.clean_up())
                if job is None:
                    break
                job.run()
        finally:  # at the end of the work, or if the thread failed: turns then continue without undo
            self._store.close()
            with suppress(RuntimeError):  # the loop is closed, and with it all waiting tasks
                self._loop.call_soon_threadsafe(self._close_and_reject_jobs)

    def _close_and_reject_jobs(self) -> None:
        # Runs on the loop, where jobs are also added, so no job can be added after the queue is emptied.
        self._is_closed = True
        while not self._queue.empty():
            if (job := self._queue.get()) is not None:
                job.reject()
        self._ended.set()


def _closed_error() -> UndoRefused:
    return UndoRefused("Nothing was undone because undo has shut down. Restart Hark and try again.")
