"""Runs child sessions. A child may outlive the call that started it, and then reports its end to its parent."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import anyio
from msgspec import Struct

from hark.protocol.events import CallEnd, CallStart, QuestionAsked, QuestionClosed, ReplyDelta, TurnEnd
from hark.protocol.messages import Effect
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Usage
from hark.protocol.session import Session
from hark.protocol.tool import CallContext, NoUserToAsk, Question, ToolOutput

STOP_SECONDS = 0.8
MAX_PARTIAL_CHARACTERS = 20_000
MAX_RESULT_CHARACTERS = 1_000
PARENT_STOPPED = "its parent was stopped"


class ChildOptions(Struct, frozen=True):
    """The tools and limits of a child session. None means the parent's tools, or the limits in the settings."""

    tools: tuple[str, ...] | None = None
    steps: int | None = None
    seconds: float | None = None


OpenChild = Callable[[str, ChildOptions], Session]


class WorkLog(Protocol):
    """Records background work of a session, and reports its end to the session once."""

    def keep(self, session: str, work: str) -> None:
        """Register work that is recorded elsewhere, so that it is not reported as lost. Returns immediately."""
        ...

    async def end(self, session: str, work: str, name: str, report: str, *, wakes: bool) -> None:
        """Record the end of work. With "" as the report, the session is not notified."""
        ...

    def add_usage(self, child: str, usage: Usage, cost: float | None) -> None:
        """Count a child's turn in the session costs of its parent and further ancestors. Returns immediately."""
        ...


class ChildRun:
    """One run of a child: shows its output, and forwards its questions to the parent's user."""

    def __init__(self, child: Session, goal: str, context: CallContext, log: WorkLog) -> None:
        self.child = child
        self.parent = context.session
        self.is_detached = False
        self.is_reported = True
        self._context = context
        self._log = log
        self._text = ""
        self._questions: dict[str, anyio.CancelScope] = {}
        self.task = asyncio.create_task(self._run(goal), name=f"child {child.id}")

    def detach(self) -> None:
        """Let the child outlive its call."""
        self.is_detached = True
        self._log.keep(self.parent, self._context.call)

    async def stop(self) -> bool:
        """Stop the child and its descendants. Return False if it did not settle in time. Cancelling has no effect."""
        with anyio.move_on_after(STOP_SECONDS, shield=True) as scope:
            await self.child.interrupt(PARENT_STOPPED)
        return not scope.cancelled_caught

    async def _run(self, goal: str) -> ToolOutput:
        outcome: Outcome | None = None
        try:
            outcome = await self._follow(goal)
            output = _build_output(outcome, self._text)
        except Exception as error:  # noqa: BLE001 the tool boundary: becomes a result
            output = ToolOutput(f"{type(error).__name__}: {error}", is_error=True, effect=Effect.UNKNOWN)
        if self.is_detached:
            state = "finished" if isinstance(outcome, Completed) else "ended without a result"
            text = f"[The child {self.child.id} {state}.]\n{output.text}" if self.is_reported else ""
            is_stopped = isinstance(outcome, Interrupted)
            await self._log.end(self.parent, self._context.call, self.child.id, text, wakes=not is_stopped)
        return output

    async def _follow(self, goal: str) -> Outcome | None:
        """Run the goal and return the outcome, or None if the session closed before its turn ended."""
        events = self.child.events()
        await self.child.say(goal, id=self._context.call)
        async with anyio.create_task_group() as tasks:
            async for event in events:
                match event:
                    case ReplyDelta(text=text):
                        self._add_output(text)
                    case CallStart(name=name):
                        self._add_output(f"\n[{name}]\n")
                    case CallEnd(effect=effect, text=text):
                        self._text += f"{text[-MAX_RESULT_CHARACTERS:]}\n[{effect}]\n"
                    case QuestionAsked():
                        scope = self._questions[event.question] = anyio.CancelScope()
                        tasks.start_soon(self._forward_question, event, scope)
                    case QuestionClosed(question=question) if question in self._questions:
                        self._questions.pop(question).cancel()
                    case TurnEnd(outcome=outcome):
                        self._log.add_usage(self.child.id, event.usage, event.cost)
                        tasks.cancel_scope.cancel()
                        return outcome
                    case _:
                        pass
            tasks.cancel_scope.cancel()
        return None

    def _add_output(self, text: str) -> None:
        self._text = (self._text + text)[-MAX_PARTIAL_CHARACTERS:]
        if not self.is_detached:
            self._context.output(text)

    async def _forward_question(self, event: QuestionAsked, scope: anyio.CancelScope) -> None:
        """Ask the parent's user. The question is withdrawn if it is answered or withdrawn in the child session."""
        with scope:
            text = f"A child asks: {event.text}"
            question = Question(text, event.choices, event.kind, event.is_open_ended, outlives_turn=True)
            try:
                answer = await self._context.ask(question)
            except NoUserToAsk:
                return
            await self.child.answer(event.question, answer)


class Children:
    """The children that run in this process."""

    def __init__(self, log: WorkLog) -> None:
        self._log = log
        self._runs: list[ChildRun] = []

    def start(self, child: Session, goal: str, context: CallContext) -> ChildRun:
        """Start a child. Its task returns the result."""
        run = ChildRun(child, goal, context, self._log)
        self._runs.append(run)
        run.task.add_done_callback(lambda _: self._runs.remove(run))
        return run

    def detached(self, parent: str) -> list[ChildRun]:
        """Return a session's running children that have outlived their calls."""
        return [run for run in self._runs if run.parent == parent and run.is_detached]

    async def stop_detached(self, parent: str, *, is_reported: bool = True) -> list[str]:
        """Stop a session's children that have outlived their calls, and their descendants. Return their names.

        Without `is_reported`, the parent gets no report about them.
        """
        runs = self.detached(parent)
        async with anyio.create_task_group() as tasks:
            for run in runs:
                run.is_reported = run.is_reported and is_reported
                tasks.start_soon(run.stop)
        return [run.child.id for run in runs]

    async def close(self) -> None:
        """Cancel all runs. Their sessions are closed separately."""
        for run in self._runs:
            run.task.cancel()


def _build_output(outcome: Outcome | None, partial_text: str) -> ToolOutput:
    """Return the child's answer. If the child did not finish, return its partial output and the reason."""
    match outcome:
        case None:
            return ToolOutput("The child session closed before it answered.", is_error=True, effect=Effect.UNKNOWN)
        case Completed(text):
            return ToolOutput(text)
        case Interrupted(source):
            why, effect = f"the child was stopped: {source}", Effect.CANCELLED
        case Failed(error):
            why, effect = f"the child failed: {error.message}", Effect.UNKNOWN
        case LimitReached(_, message):
            why, effect = f"the child stopped early: {message}", Effect.UNKNOWN
    return ToolOutput(f"{partial_text}\n[{why}]".lstrip(), is_error=True, effect=effect)
