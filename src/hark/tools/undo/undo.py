"""Undo: what changing steps may change is kept before them, and put back when their person asks for it."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import anyio

from hark.protocol.snapshots import StepName, Undone, UndoRefused
from hark.tools.undo.scan import ScanCancelled, ScanLimits
from hark.tools.undo.undo_store import Extent, UndoStore

SLACK_SECONDS = 1.0  # for the disk and the lock, over the limits of this look and the one that may be under way
CLOSE_SECONDS = 0.9
IDLE_SECONDS = 1.0


class _Job:
    """Work for the thread. `stop` is set when nobody waits for it any more."""

    def __init__(self, work: Callable[[Event], Any]) -> None:
        self._work = work
        self.stop = Event()
        self.answer: Future[Any] = Future()
        self.answer.set_running_or_notify_cancel()  # so that a cancel leaves it alone

    def run(self) -> None:
        try:
            self.answer.set_result(None if self.stop.is_set() else self._work(self.stop))
        except UndoRefused as refusal:
            self.answer.set_exception(refusal)
        except (ScanCancelled, OSError):
            self.refuse()  # nobody waits for a stopped one; of the housekeeping there is nothing to tell
        except BaseException:
            self.refuse()
            raise

    def refuse(self) -> None:
        self.answer.set_exception(_closed())


class Undo:
    """Snapshots in a store of its own under one folder: no git is needed, and none is touched.

    All work is done by one daemon thread, in order: so a step's end is taken in before the next one's beginning, and
    nothing holds the event loop or the exit.
    """

    def __init__(self, folder: Path, limits: ScanLimits | None = None) -> None:
        """Finish in the background what a crash left in the folder; make it with the first step. On a running loop."""
        self._limits = limits or ScanLimits()
        self._keeper = UndoStore(folder, self._limits)
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._ended = asyncio.Event()
        self._thread = Thread(target=self._run, name="hark-undo", daemon=True)
        self._thread.start()
        self._queue.put(_Job(lambda _: self._keeper.recover()))

    async def before(self, step: StepName, workspace: Path, writes: Sequence[str] | None) -> None:
        """Keep what the step may change; return when it is safe to begin, or after the time limit."""

        def keep(stop: Event) -> None:
            try:
                self._keeper.before(step, workspace, writes, stop)
            except OSError as error:
                self._keeper.trouble(step, error)

        limit_seconds = self._limits.seconds * 2 + SLACK_SECONDS
        with suppress(UndoRefused), anyio.move_on_after(limit_seconds) as scope:
            await self._do(keep)
            return
        if scope.cancelled_caught and not self._is_closed:
            late = TimeoutError(f"the disk did not answer within {limit_seconds:.0f} s")
            self._queue.put(_Job(lambda _: self._keeper.trouble(step, late)))

    def after(self, step: StepName, notes: Sequence[str] = ()) -> None:
        """Take in what the step changed, soon; the next `before` comes behind it."""

        def settle(_: Event) -> None:
            try:
                self._keeper.after(step, notes)
            except OSError as error:
                self._keeper.trouble(step, error)

        if not self._is_closed:
            self._queue.put(_Job(settle))

    async def undo(self, session: str, *, only_step: bool = False, since: str = "") -> Undone:
        """Put back what the last turn or step changed. Cancelling stops it before the first file, or not at all."""
        extent = Extent(only_step, since)
        return await self._do(lambda stop: self._keeper.undo(session, extent, stop))

    async def close(self) -> None:
        """Finish what was begun, within a second; what isn't finished then is at the next start."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._ended.wait()

    async def _do(self, work: Callable[[Event], Any]) -> Any:
        if self._is_closed:
            raise _closed()
        job = _Job(work)
        self._queue.put(job)
        try:
            return await asyncio.wrap_future(job.answer)
        finally:
            job.stop.set()

    def _run(self) -> None:
        is_swept = False
        try:
            while True:
                try:
                    job = self._queue.get(timeout=None if is_swept else IDLE_SECONDS)
                except Empty:
                    is_swept = True
                    job = _Job(lambda _: self._keeper.sweep())
                if job is None:
                    break
                job.run()
        finally:  # at the end of the work, or of a thread that broke down: then turns go on without it
            self._keeper.close()
            with suppress(RuntimeError):  # the loop is gone, and all who waited with it
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        # On the loop, like the putting in: nothing can slip in behind the last look at the queue.
        self._is_closed = True
        while not self._queue.empty():
            if (job := self._queue.get()) is not None:
                job.refuse()
        self._ended.set()


def _closed() -> UndoRefused:
    return UndoRefused("Nothing was undone: undo is closed. Start Hark again, then undo.")
