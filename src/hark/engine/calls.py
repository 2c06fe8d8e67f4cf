"""A step's calls: side by side, each with one honest result, and none that can hold the turn."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
import msgspec

from hark.engine.approvals import Verdict, verdict
from hark.engine.context import Context, TurnLines
from hark.engine.log import Log
from hark.engine.text import clean, cut_middle
from hark.engine.timeline import Timeline
from hark.engine.workbench import Workbench
from hark.protocol.messages import Call, CallResult, Effect
from hark.protocol.records import CallEnded, CallStarted, Quarantined
from hark.protocol.tool import NobodyToAsk, Question, Tool, ToolOutput

RESULT_CHARACTERS = 100_000
YES = "yes"
NO = "no"
_ARGUMENTS = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run: its tool was found, and its arguments are right."""

    call: Call
    tool: Tool
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Running:
    """A call whose tool runs in a task of its own, which can be cancelled, and left behind if it resists."""

    call: Call
    tool: Tool
    context: Context
    task: asyncio.Task[ToolOutput]
    started_at: float


class Calls:
    """Runs the calls of one turn. What resists a cancel is abandoned: its late result is quarantined."""

    def __init__(self, bench: Workbench, log: Log, lines: TurnLines, timeline: Timeline) -> None:
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = timeline
        self.abandoned: list[str] = []

    async def run(self, calls: Sequence[Call]) -> None:
        """Give every call a result. Cancelling ends the running ones first: cancel, their grace, then abandon."""
        running: list[Running] = []
        try:
            ready = [prepared for call in calls if (prepared := await self._prepare(call))]
            await self._log.append(*(self._record_start(prepared.call) for prepared in ready))
            await self._lines.prove()
            running.extend(self._start(prepared) for prepared in ready)
            await self._finish(running)
        except BaseException:  # whatever ends the step early, no tool may outlive it
            with anyio.CancelScope(shield=True):
                await self._cut(running)
            self._close_unstarted(calls)
            raise

    async def _prepare(self, call: Call) -> Prepared | None:
        """Return the call ready to run, or give it the result that says why it does not."""
        tool = self._bench.tools.get(call.name)
        if tool is None:
            names = ", ".join(spec.name for spec in self._bench.tools.specs)
            return self._refuse(call, f"There is no tool named {call.name!r}. The tools are: {names}.")
        if call.broken:
            return self._refuse(call, f"The arguments are not a JSON object: {call.broken[:200]!r}. Send them again.")
        arguments = _ARGUMENTS.decode(call.arguments)
        wrong = self._bench.tools.check(tool.spec, arguments)
        if wrong:
            return self._refuse(call, wrong)
        match verdict(self._bench.rules.approvals, tool.spec, arguments):
            case Verdict.RUN:
                return Prepared(call, tool, arguments)
            case Verdict.DENY:
                return self._refuse(call, "This is denied by the rules of this machine's owner.")
            case Verdict.ASK:
                return await self._approve(Prepared(call, tool, arguments))

    async def _approve(self, prepared: Prepared) -> Prepared | None:
        call = prepared.call
        question = Question(f"Run {call.name} with {call.arguments}?", (YES, NO))
        try:
            with self._timeline.span("question", call.name):
                answer = await self._lines.questions.ask(self._lines.turn, question)
        except NobodyToAsk:
            return self._refuse(call, "This needs a person's approval, and nobody is there to give it.")
        if answer.strip().lower() in (YES, "y"):
            return prepared
        return self._refuse(call, f"The person did not allow this. They answered: {answer}")

    def _refuse(self, call: Call, why: str) -> None:
        self._log.append(self._record_end(CallResult(call.id, call.name, why, Effect.NOT_STARTED, is_error=True)))

    def _record_start(self, call: Call) -> CallStarted:
        return CallStarted(turn=self._lines.turn, call=call.id, at=self._bench.clock.now())

    def _start(self, prepared: Prepared) -> Running:
        context = Context(self._lines, prepared.call.id, self._bench.workspace)
        task = asyncio.create_task(_run_tool(prepared, context), name=f"call {prepared.call.name}")
        return Running(prepared.call, prepared.tool, context, task, self._timeline.now())

    async def _finish(self, running: list[Running]) -> None:
        """Record each result as it comes; return when all are durable."""
        left: list[Running] = list(running)
        while left:
            await asyncio.wait([one.task for one in left], return_when=asyncio.FIRST_COMPLETED)
            done = [one for one in left if one.task.done()]
            left = [one for one in left if one not in done]
            for one in done:
                self._timeline.add("tool", one.call.name, one.started_at)
            await self._log.append(*(self._record_end(_result(one)) for one in done))

    async def _cut(self, running: list[Running]) -> None:
        """Cancel all that runs and wait as long as each may take; what is still there then is left behind."""
        began = anyio.current_time()
        open_ones = [one for one in running if one.call.id in self._open_calls()]
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

    def _abandon(self, running: Running) -> None:
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
                text = "[interrupted before it was started]"
                self._log.append(
                    self._record_end(CallResult(call.id, call.name, text, Effect.NOT_STARTED, is_error=True))
                )

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
    except BaseException as error:  # noqa: BLE001 the tool boundary: becomes a result
        return ToolOutput(f"{type(error).__name__}: {error}", is_error=True, effect=Effect.UNKNOWN)


def _result(running: Running) -> CallResult:
    """Return what is known of a call whose task is over: a result that was reached wins over the cancel."""
    call = running.call
    if running.task.cancelled():
        text = f"{running.context.said}\n[cancelled]".lstrip()
        return CallResult(call.id, call.name, text, Effect.CANCELLED, is_error=True)
    output = running.task.result()
    text = cut_middle(clean(output.text), RESULT_CHARACTERS)
    return CallResult(call.id, call.name, text, output.effect, output.is_error)
