"""Runs a step's tool calls in parallel. Each call gets one accurate result, and no call can block the turn."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from hark.engine.services import EngineServices
from hark.engine.session.journal_writer import JournalWriter
from hark.engine.turn.gate import CallGate, PreparedCall
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import ToolCallContext, TurnIO
from hark.protocol.messages import Call, CallResult, Effect
from hark.protocol.records import CallEnded, CallStarted, Quarantined
from hark.protocol.rules import SteerBefore
from hark.protocol.snapshots import StepId
from hark.protocol.tool import Tool, ToolError, ToolOutput
from hark.text.cleanup import replace_surrogates, truncate_middle

MAX_RESULT_CHARACTERS = 100_000
SKIPPED = "[not started: the user sent a message first; read it, then decide again]"
REDIRECTED = "[not started: the user declined earlier calls and said what to do instead]"


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call whose tool runs in a separate task, which can be cancelled, or abandoned if it does not stop."""

    call: Call
    tool: Tool
    context: ToolCallContext
    task: asyncio.Task[ToolOutput]
    started_at: float


class CallRunner:
    """Runs the calls of one turn. A call that does not stop is abandoned, and its late result is quarantined."""

    def __init__(self, services: EngineServices, journal: JournalWriter, io: TurnIO, timeline: Timeline) -> None:
        self._services = services
        self._journal = journal
        self._io = io
        self._timeline = timeline
        self._gate = CallGate(services, journal, io, timeline)
        self._running: list[RunningCall] = []
        self._irreversible_effects: list[str] = []
        self.abandoned: list[str] = []

    @property
    def outputs(self) -> dict[str, str]:
        """The last output of each running call, by the call's id."""
        return {one.call.id: one.context.output_tail for one in self._running if not one.task.done()}

    @property
    def running(self) -> list[Call]:
        """The calls whose tools are running."""
        return [one.call for one in self._running if not one.task.done()]

    def cancel(self, reason: str) -> None:
        """Cancel the running calls. The step continues with their results, which contain the reason."""
        for running in self._running:
            if not running.task.done():
                running.context.output(f"\n[{reason}]")
                running.task.cancel()

    async def run(self, calls: Sequence[Call], step: int) -> None:
        """Run all calls until each has a result. After a cancel, calls are abandoned once their grace period ends.

        Calls that need no approval start immediately. Meanwhile the user is asked about the others, one by one.
        """
        step_id = StepId(self._io.session, self._io.turn, step)
        self._running, self._irreversible_effects = [], []
        try:
            prepared = [await self._prepare(call) for call in calls]
            ready = [prepared_call for prepared_call in prepared if prepared_call and not prepared_call.needs_approval]
            unapproved = [one for one in prepared if one and one.needs_approval]
            if self._io.steering.is_set and self._services.rules.steer_before is SteerBefore.TOOL:
                self._skip([*ready, *unapproved])
                ready, unapproved = [], []
            await self._start(ready, step_id)
            if unapproved:
                await self._approve_all(unapproved, step_id)
            await self._wait_for_all()
        except BaseException:  # however the step ends, no tool may outlive it
            with anyio.CancelScope(shield=True):
                await self._cancel_running()
            self._close_unstarted(calls)
            raise
        finally:
            self._services.snapshots.finish_step(step_id, self._irreversible_effects)

    async def _prepare(self, call: Call) -> PreparedCall | None:
        """Return the call ready to run, or None after recording a result that says why it can't run."""
        prepared = await self._gate.prepare(call)
        return prepared if isinstance(prepared, PreparedCall) else self._refuse(call, prepared)

    def _refuse(self, call: Call, reason: str) -> None:
        self._journal.append(
            self._make_end_record(CallResult(call.id, call.name, reason, Effect.NOT_STARTED, is_error=True))
        )

    def _skip(self, prepared: Sequence[PreparedCall], reason: str = SKIPPED) -> None:
        for call in prepared:
            self._refuse(call.call, reason)

    async def _start(self, ready: Sequence[PreparedCall], step_id: StepId) -> None:
        """Start the calls once their files are saved, their start records are durable and ownership is verified."""
        if not ready:
            return
        writes = _written_paths(ready)
        if writes is None or writes:
            with self._timeline.span("snapshot", "files"):
                await self._services.snapshots.save_before_step(step_id, self._services.workspace, writes)
        self._irreversible_effects.extend(
            prepared.forecast.irreversible_effect for prepared in ready if prepared.forecast.irreversible_effect
        )
        await self._journal.append(*(self._make_start_record(prepared.call) for prepared in ready))
        await self._io.verify_ownership()
        self._running.extend(self._start_task(prepared) for prepared in ready)

    def _make_start_record(self, call: Call) -> CallStarted:
        return CallStarted(turn=self._io.turn, call=call.id, at=self._services.clock.now())

    def _start_task(self, prepared: PreparedCall) -> RunningCall:
        self._io.mark_event()
        context = ToolCallContext(self._io, prepared.call.id, self._services.workspace)
        task = asyncio.create_task(_run_tool(prepared, context), name=f"call {prepared.call.name}")
        return RunningCall(prepared.call, prepared.tool, context, task, self._timeline.elapsed_ms())

    async def _approve_all(self, unapproved: list[PreparedCall], step_id: StepId) -> None:
        """Ask for approval of the calls one by one. If a message for this turn arrives, skip the remaining calls."""
        for index, call in enumerate(unapproved):
            refusal = await self._wait_for_approval(call)
            if refusal is None:
                return self._skip(unapproved[index:])
            if refusal:
                self._refuse(call.call, refusal)
                if self._gate.pop_redirection():
                    return self._skip(unapproved[index + 1 :], REDIRECTED)
            else:
                await self._start([call], step_id)
        return None

    async def _wait_for_approval(self, prepared: PreparedCall) -> str | None:
        """Return the refusal, "" if the call may run, or None if a message for the turn arrived first.

        Results of other calls that finish meanwhile are recorded.
        """
        steer = asyncio.create_task(self._io.steering.wait(), name="steer")
        approval = asyncio.create_task(self._gate.approve(prepared), name="approval")
        try:
            while not approval.done() and not steer.done():
                await asyncio.wait([approval, steer, *self._open_tasks()], return_when=asyncio.FIRST_COMPLETED)
                await self._record_finished()
            return approval.result() if approval.done() else None
        finally:
            steer.cancel()
            approval.cancel()
            with anyio.CancelScope(shield=True):  # both tasks only wait, so they end immediately
                await asyncio.wait([approval, steer])

    def _open_tasks(self) -> list[asyncio.Task[ToolOutput]]:
        return [running.task for running in self._running if running.call.id in self._open_calls()]

    async def _wait_for_all(self) -> None:
        while tasks := self._open_tasks():
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await self._record_finished()

    async def _record_finished(self) -> None:
        done = [running for running in self._running if running.task.done() and running.call.id in self._open_calls()]
        for running in done:
            self._io.mark_event()
            self._timeline.add_span("tool", running.call.name, running.started_at)
        await self._journal.append(*(self._make_end_record(_call_result(one)) for one in done))

    async def _cancel_running(self) -> None:
        """Cancel all running calls, wait for each call's grace period, and abandon those that are still running."""
        start = anyio.current_time()
        open_calls = [one for one in self._running if one.call.id in self._open_calls()]
        for running in open_calls:
            running.task.cancel()
        for running in sorted(open_calls, key=lambda one: one.tool.spec.grace_seconds):
            grace = min(running.tool.spec.grace_seconds, self._services.rules.limits.settle_seconds * 0.9)
            remaining = max(0.0, start + grace - anyio.current_time())
            await asyncio.wait([running.task], timeout=remaining)
            self._timeline.add_span("tool", running.call.name, running.started_at)
            if running.task.done():
                self.abandoned.extend(running.context.left_running)
                self._journal.append(self._make_end_record(_call_result(running)))
            else:
                self._abandon(running)

    def _abandon(self, running: RunningCall) -> None:
        call = running.call
        running.context.abandon()
        self.abandoned.append(call.name)
        text = f"{running.context.output_tail}\n[cancelled, but it did not stop; its effect is unknown]".lstrip()
        self._journal.append(self._make_end_record(CallResult(call.id, call.name, text, Effect.UNKNOWN, is_error=True)))
        self._services.quarantine.watch(running.task, self._late_result_recorder(call))

    def _late_result_recorder(self, call: Call) -> Callable[[ToolOutput], None]:
        def record(output: ToolOutput) -> None:
            late = Quarantined(turn=self._io.turn, call=call.id, name=call.name, text=replace_surrogates(output.text))
            self._journal.append(late)

        return record

    def _close_unstarted(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if call.id in self._open_calls():
                self._refuse(call, "[interrupted before it started]")

    def _open_calls(self) -> dict[str, Call]:
        turn = self._journal.state.turn
        return turn.calls if turn else {}

    def _make_end_record(self, result: CallResult) -> CallEnded:
        return CallEnded(turn=self._io.turn, result=result, at=self._services.clock.now())


async def _run_tool(prepared: PreparedCall, context: ToolCallContext) -> ToolOutput:
    try:
        return await prepared.tool.run(prepared.arguments, context)
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except ToolError as error:
        return error.as_output()
    except BaseException as error:  # noqa: BLE001 the tool boundary: becomes a result
        return ToolOutput(f"{type(error).__name__}: {error}", is_error=True, effect=Effect.UNKNOWN)


def _written_paths(ready: Sequence[PreparedCall]) -> list[str] | None:
    """Return the paths that the calls may change, or None if they can't be known."""
    paths: list[str] = []
    for prepared in ready:
        if prepared.forecast.writes is None:
            return None
        paths.extend(prepared.forecast.writes)
    return paths


def _call_result(running: RunningCall) -> CallResult:
    """Return the result of a call whose task is done. A returned result takes precedence over a cancel."""
    call = running.call
    if running.task.cancelled():
        text = f"{running.context.output_tail}\n[cancelled]".lstrip()
        return CallResult(call.id, call.name, text, Effect.CANCELLED, is_error=True)
    output = running.task.result()
    text = truncate_middle(replace_surrogates(output.text), MAX_RESULT_CHARACTERS)
    return CallResult(call.id, call.name, text, output.effect, output.is_error, output.attachments)
