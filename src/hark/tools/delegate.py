"""The `delegate` tool: assigns a task to a child session, which ends with the call."""

from collections.abc import Callable
from typing import Annotated

import anyio
from msgspec import Struct

from hark.protocol.events import CallEnd, CallStart, QuestionAsked, QuestionClosed, ReplyDelta, TurnEnd
from hark.protocol.messages import Effect
from hark.protocol.names import child_depth, child_session_name
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.session import Session
from hark.protocol.tool import CallContext, NoUserToAsk, Question, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

MAX_CHILD_DEPTH = 3
STOP_SECONDS = 0.8
MAX_PARTIAL_CHARACTERS = 20_000
MAX_RESULT_CHARACTERS = 1_000


class DelegateArguments(ToolArguments, frozen=True):
    """Give a task to a child agent, which works independently and returns its final answer.

    The child knows nothing of this conversation: the goal must contain everything it needs. Calls run in parallel.
    """

    goal: Annotated[str, doc("The complete task. It must be understandable on its own.")]
    tools: Annotated[
        tuple[str, ...] | None, doc("The names of the tools that the child may use. By default it has your tools.")
    ] = None
    steps: Annotated[int, doc("The maximum number of model replies.", ge=1)] | None = None
    seconds: Annotated[float, doc("The time limit in seconds.", gt=0)] | None = None


class ChildOptions(Struct, frozen=True):
    """The tools and limits of a child session. None means the parent's tools, or the limits in the settings."""

    tools: tuple[str, ...] | None = None
    steps: int | None = None
    seconds: float | None = None


OpenChild = Callable[[str, ChildOptions], Session]


class DelegateTool:
    """The tool that runs child sessions.

    Stopping the parent stops its children and returns their partial output; steering the parent leaves them running.
    A child can also be stopped alone, by name: the parent receives the child's partial output and continues.
    """

    spec = tool_spec(DelegateArguments, "delegate", is_changing=True, grace_seconds=0.9)

    def __init__(self, open_child: OpenChild) -> None:
        """Create the tool. `open_child` opens a child session; it raises ValueError if a requested tool doesn't
        exist.
        """
        self._open_child = open_child

    async def run(self, arguments: DelegateArguments, context: CallContext) -> ToolOutput:
        """Return the child's answer. Cancelling interrupts the child and waits until it has settled."""
        if child_depth(context.session) >= MAX_CHILD_DEPTH:
            raise ToolError(f"Children can be nested at most {MAX_CHILD_DEPTH} levels deep. Do this task yourself.")
        options = ChildOptions(arguments.tools, arguments.steps, arguments.seconds)
        try:
            child = self._open_child(child_session_name(context.session, context.call), options)
        except ValueError as error:
            raise ToolError(str(error)) from error
        try:
            return await _ChildRun(child, context).run_goal(arguments.goal)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(STOP_SECONDS, shield=True) as scope:
                await child.interrupt("its parent was stopped")
            if scope.cancelled_caught:
                context.report_unstopped(child.id)
            raise


class _ChildRun:
    """One run of a child: shows its output, and forwards its questions to the parent's user."""

    def __init__(self, child: Session, context: CallContext) -> None:
        self._child = child
        self._context = context
        self._text = ""
        self._questions: dict[str, anyio.CancelScope] = {}

    async def run_goal(self, goal: str) -> ToolOutput:
        events = self._child.events()
        await self._child.say(goal, id=self._context.call)
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
                        tasks.cancel_scope.cancel()
                        return _build_output(outcome, self._text)
                    case _:
                        pass
            tasks.cancel_scope.cancel()
        return ToolOutput("The child session closed before it answered.", is_error=True, effect=Effect.UNKNOWN)

    def _add_output(self, text: str) -> None:
        self._text = (self._text + text)[-MAX_PARTIAL_CHARACTERS:]
        self._context.output(text)

    async def _forward_question(self, event: QuestionAsked, scope: anyio.CancelScope) -> None:
        """Ask the parent's user. The question is withdrawn if it is answered or withdrawn in the child session."""
        with scope:
            try:
                answer = await self._context.ask(Question(f"A child asks: {event.text}", event.choices, event.kind))
            except NoUserToAsk:
                return
            await self._child.answer(event.question, answer)


def _build_output(outcome: Outcome, partial_text: str) -> ToolOutput:
    """Return the child's answer. If the child did not finish, return its partial output and the reason."""
    match outcome:
        case Completed(text):
            return ToolOutput(text)
        case Interrupted(source):
            why, effect = f"the child was stopped: {source}", Effect.CANCELLED
        case Failed(error):
            why, effect = f"the child failed: {error.message}", Effect.UNKNOWN
        case LimitReached(_, message):
            why, effect = f"the child stopped early: {message}", Effect.UNKNOWN
    return ToolOutput(f"{partial_text}\n[{why}]".lstrip(), is_error=True, effect=effect)
