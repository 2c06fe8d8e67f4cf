"""Background work of sessions: its end is recorded once, and all of a session's work can be ended together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from secrets import token_hex

import anyio

from hark.processes.background import BackgroundProcess, BackgroundProcesses
from hark.protocol.commands import ChangeCommand, EndWork, RecordUsage, StartWork
from hark.protocol.names import is_child, split_child
from hark.protocol.outcomes import Usage
from hark.protocol.receipts import Refusal
from hark.tools.children import Children

MAX_TAIL_CHARACTERS = 4_000
RETRY_SECONDS = 1.0
MAX_TRIES = 30
LOG = logging.getLogger(__name__)
Change = Callable[[str, ChangeCommand], Awaitable[Refusal | None]]


class BackgroundWork:
    """The background processes and continuing children of all sessions in this process."""

    def __init__(self, background: BackgroundProcesses, change: Change) -> None:
        """`change` sends a command to a session."""
        self.children = Children(self)
        self.running: set[tuple[str, str]] = set()  # sessions and work; the engine does not report it as lost
        self._background = background
        self._change = change
        self._tasks: set[asyncio.Task[object]] = set()

    def keep(self, session: str, work: str) -> None:
        """Register work that is recorded elsewhere, so that it is not reported as lost. Returns immediately."""
        self.running.add((session, work))

    async def end(self, session: str, work: str, name: str, report: str, *, wakes: bool) -> None:
        """Record the end of work. With "" as the report, the session is not notified."""
        command = EndWork(token_hex(8), work, name, report, wakes)
        for _ in range(MAX_TRIES):
            refusal = await self._change(session, command)
            if refusal is None or refusal.code != "store":
                break
            await anyio.sleep(RETRY_SECONDS)
        self.running.discard((session, work))

    def add_usage(self, child: str, usage: Usage, cost: float | None) -> None:
        """Count a child's turn in the session costs of its parent and further ancestors. Returns immediately."""
        if usage.input_tokens or usage.output_tokens or cost:
            self.start_soon(self._add_usage(child, usage, cost))

    async def _add_usage(self, child: str, usage: Usage, cost: float | None) -> None:
        session = child
        while session := split_child(session)[0]:
            await self._change(session, RecordUsage(token_hex(8), "", usage, cost, child))

    # Processes.

    async def watch_process(self, session: str, process: BackgroundProcess) -> None:
        """Record a process that outlives its call. Its end wakes the session, unless the model knows about it.

        A second call has no effect. Cancelling only ends the wait for the record.
        """
        if (session, process.work) in self.running:
            return
        self.keep(session, process.work)
        start = StartWork(token_hex(8), process.work, process.name)
        recorded = asyncio.ensure_future(self._change(session, start))
        self.start_soon(self._watch(session, process, recorded))
        await asyncio.shield(recorded)

    def note_end_read(self, session: str, process: BackgroundProcess) -> None:
        """Drop a pending report, because the model has read that the process ended. Returns immediately."""
        if not process.is_end_read:
            process.is_end_read = True
            self.start_soon(self.end(session, process.work, process.name, "", wakes=False))

    async def _watch(self, session: str, process: BackgroundProcess, recorded: Awaitable[object]) -> None:
        await recorded
        await process.wait_until_ended()
        is_known = process.is_end_read or process.was_stopped
        tail = process.output.peek()[-MAX_TAIL_CHARACTERS:].strip()
        text = f"[The background process {process.name} {process.status_text}: {process.command_text}]\n{tail}".rstrip()
        # A child's turn is usually over when its processes end, and no user would see another turn.
        await self.end(session, process.work, process.name, "" if is_known else text, wakes=not is_child(session))

    # Stopping.

    def stop_children(self, session: str) -> None:
        """Stop the children that a session's earlier turns left running. Returns immediately."""
        if self.children.detached(session):
            self.start_soon(self.children.stop_detached(session))

    async def end_all(self, session: str, keep: Collection[str] = ()) -> list[str]:
        """End a session's children and background processes except `keep`, silently. Return their names."""
        processes = [one for one in self._background.list_processes(session) if one.is_running and one.name not in keep]
        names = [run.child.id for run in self.children.detached(session)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_children, session)
            for process in processes:
                tasks.start_soon(process.stop)
        return [*names, *(process.name for process in processes)]

    async def _end_children(self, session: str) -> None:
        await self.children.stop_detached(session, is_reported=False)

    def describe_running(self, session: str) -> list[str]:
        """Return the names of a session's running children and processes that outlive their turn."""
        processes = [one.name for one in self._background.list_processes(session) if one.is_running]
        return [*(run.child.id for run in self.children.detached(session)), *processes]

    async def close(self) -> None:
        """Stop watching. The work itself is ended by its owner."""
        await self.children.close()
        for task in self._tasks:
            task.cancel()

    def start_soon(self, work: Awaitable[object]) -> None:
        """Run `work` in a task that ends with the agent. A failure is logged."""

        async def run() -> object:
            try:
                return await work
            except Exception:  # the boundary of a background task: a failure must not reach a user's turn
                LOG.exception("background work could not be recorded")
                return None

        task = asyncio.create_task(run(), name="background work")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
