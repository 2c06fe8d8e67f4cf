"""A step's calls: side by side, each with one honest result, and none that can hold the turn."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.log import Log
from hark.engine.turn.gate import Gate, Prepared
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import Context, TurnIO
from hark.protocol.messages import Call, CallResult, Effect
from hark.protocol.records import CallEnded, CallStarted, Quarantined
from hark.protocol.rules import SteerBefore
from hark.protocol.snapshots import StepName
from hark.protocol.tool import Tool, ToolError, ToolOutput
from hark.text.clean import clean, cut_middle

RESULT_CHARACTERS = 100_000
SKIPPED = "[not started: the person said something first; read it, then decide anew]"


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call whose tool runs in a task of its own, which can be cancelled, and left behind if it resists."""

    call: Call
    tool: Tool
    context: Context
    task: asyncio.Task[ToolOutput]
    started_at: float


class Calls:
    """Runs the calls of one turn. What resists a cancel is abandoned: its late result is quarantined."""

    def __init__(self, bench: EngineServices, log: Log, lines: TurnIO, timeline: Timeline) -> None:
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = timeline
        self._gate = Gate(bench, log, lines, timeline)
        self._running: list[RunningCall] = []
        self._stays: list[str] = []
        self.abandoned: list[str] = []

    async def run(self, calls: Sequence[Call], step: int) -> None:
        """Give every call a result. Cancelling ends the running ones first: cancel, their grace, then abandon.

        What needs no approval starts at once; what does is asked for one by one, while the others run.
        """
        name = StepName(self._lines.session, self._lines.turn, step)
        self._running, self._stays = [], []
        try:
            prepared = [await self._prepare(call) for call in calls]
            ready = [one for one in prepared if one and not one.is_asked]
            doubtful = [one for one in prepared if one and one.is_asked]
            if self._lines.steering.is_set and self._bench.rules.steer_before is SteerBefore.TOOL:
                self._skip([*ready, *doubtful])
                ready, doubtful = [], []
            await self._start(ready, name)
            if doubtful:
                await self._approve_all(doubtful, name)
            await self._finish()
        except BaseException:  # whatever ends the step early, no tool may outlive it
            with anyio.CancelScope(shield=True):
                await self._cut()
            self._close_unstarted(calls)
            raise
        finally:
            self._bench.snapshots.after(name, self._stays)

    async def _prepare(self, call: Call) -> Prepared | None:
        """Return the call ready to run, or give it the result that says why it does not."""
        prepared = await self._gate.prepare(call)
        return prepared if isinstance(prepared, Prepared) else self._refuse(call, prepared)

    def _refuse(self, call: Call, why: str) -> None:
        self._log.append(self._record_end(CallResult(call.id, call.name, why, Effect.NOT_STARTED, is_error=True)))

    def _skip(self, prepared: Sequence[Prepared]) -> None:
        for one in prepared:
            self._refuse(one.call, SKIPPED)

    async def _start(self, ready: Sequence[Prepared], name: StepName) -> None:
        """Start the calls, once what they may change is kept, their start is durable and the session is surely ours."""
        if not ready:
            return
        writes = _writes(ready)
        if writes is None or writes:
            with self._timeline.span("snapshot", "files"):
                await self._bench.snapshots.before(name, self._bench.workspace, writes)
        self._stays.extend(one.forecast.stays for one in ready if one.forecast.stays)
        await self._log.append(*(self._record_start(one.call) for one in ready))
        await self._lines.prove()
        self._running.extend(self._begin(one) for one in ready)

    def _record_start(self, call: Call) -> CallStarted:
        return CallStarted(turn=self._lines.turn, call=call.id, at=self._bench.clock.now())

    def _begin(self, prepared: Prepared) -> RunningCall:
        context = Context(self._lines, prepared.call.id, self._bench.workspace)
        task = asyncio.create_task(_run_tool(prepared, context), name=f"call {prepared.call.name}")
        return RunningCall(prepared.call, prepared.tool, context, task, self._timeline.now())

    async def _approve_all(self, doubtful: list[Prepared], name: StepName) -> None:
        """Ask for one call after the other. A message for this turn comes before what is not allowed yet."""
        for place, one in enumerate(doubtful):
            why = await self._answer_or_steer(one)
            if why is None:
                return self._skip(doubtful[place:])
            if why:
                self._refuse(one.call, why)
            else:
                await self._start([one], name)
        return None

    async def _answer_or_steer(self, one: Prepared) -> str | None:
        """Return why the call may not run, "" when it may, None when a message for the turn came first.

        The results of the calls that run meanwhile are recorded as they come.
        """
        steered = asyncio.create_task(self._lines.steering.wait(), name="steer")
        answered = asyncio.create_task(self._gate.approve(one), name="approval")
        try:
            while not answered.done() and not steered.done():
                await asyncio.wait([answered, steered, *self._open_tasks()], return_when=asyncio.FIRST_COMPLETED)
                await self._record_done()
            return answered.result() if answered.done() else None
        finally:
            steered.cancel()
            answered.cancel()
            with anyio.CancelScope(shield=True):  # both only wait, and hear the cancel
                await asyncio.wait([answered, steered])

    def _open_tasks(self) -> list[asyncio.Task[ToolOutput]]:
        return [one.task for one in self._running if one.call.id in self._open_calls()]

    async def _finish(self) -> None:
        while left := self._open_tasks():
            await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            await self._record_done()

    async def _record_done(self) -> None:
        done = [one for one in self._running if one.task.done() and one.call.id in self._open_calls()]
        for one in done:
            self._timeline.add("tool", one.call.name, one.started_at)
        await self._log.append(*(self._record_end(_result(one)) for one in done))

    async def _cut(self) -> None:
        """Cancel all that runs and wait as long as each may take; what is still there then is left behind."""
        began = anyio.current_time()
        open_ones = [one for one in self._running if one.call.id in self._open_calls()]
        for one in open_ones:
            one.task.cancel()
        for one in sorted(open_ones, key=lambda one: one.tool.spec.grace_seconds):
            grace = min(one.tool.spec.grace_seconds, self._bench.rules.limits.settle_seconds * 0.9)
            left = max(0.0, began + grace - anyio.current_time())
            await asyncio.wait([one.task], timeout=left)
            self._timeline.add("tool", one.call.name, one.started_at)
            if one.task.done():
                self.abandoned.extend(one.context.left)
                self._log.append(self._record_end(_result(one)))
            else:
                self._abandon(one)

    def _abandon(self, running: RunningCall) -> None:
        call = running.call
        running.context.abandon()
        self.abandoned.append(call.name)
        text = f"{running.context.said}\n[cancelled, but it did not stop; its effect is unknown]".lstrip()
        self._log.append(self._record_end(CallResult(call.id, call.name, text, Effect.UNKNOWN, is_error=True)))
        self._bench.quarantine.keep(running.task, self._late(call))

    def _late(self, call: Call) -> Callable[[ToolOutput], None]:
        def record(output: ToolOutput) -> None:
            late = Quarantined(turn=self._lines.turn, call=call.id, name=call.name, text=clean(output.text))
            self._log.append(late)

        return record

    def _close_unstarted(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if call.id in self._open_calls():
                self._refuse(call, "[interrupted before it was started]")

    def _open_calls(self) -> dict[str, Call]:
        turn = self._log.state.turn
        return turn.calls if turn else {}

    def _record_end(self, result: CallResult) -> CallEnded:
        return CallEnded(turn=self._lines.turn, result=result, at=self._bench.clock.now())


async def _run_tool(prepared: Prepared, context: Context) -> ToolOutput:
    try:
        return await prepared.tool.run(prepared.arguments, context)
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except ToolError as error:
        return error.as_output()
    except BaseException as error:  # noqa: BLE001 the tool boundary: becomes a result
        return ToolOutput(f"{type(error).__name__}: {error}", is_error=True, effect=Effect.UNKNOWN)


def _writes(ready: Sequence[Prepared]) -> list[str] | None:
    """Return the paths that the calls may change together; None when nobody can know."""
    together: list[str] = []
    for one in ready:
        if one.forecast.writes is None:
            return None
        together.extend(one.forecast.writes)
    return together


def _result(running: RunningCall) -> CallResult:
    """Return what is known of a call whose task is over: a result that was reached wins over the cancel."""
    call = running.call
    if running.task.cancelled():
        text = f"{running.context.said}\n[cancelled]".lstrip()
        return CallResult(call.id, call.name, text, Effect.CANCELLED, is_error=True)
    output = running.task.result()
    text = cut_middle(clean(output.text), RESULT_CHARACTERS)
    return CallResult(call.id, call.name, text, output.effect, output.is_error, output.attachments)
