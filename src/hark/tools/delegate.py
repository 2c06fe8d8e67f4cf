"""The tool that gives work to a child: a session of its own that ends with the call."""

from collections.abc import Callable
from typing import Annotated

import anyio
from msgspec import Struct

from hark.protocol.events import CallEnd, CallStart, QuestionAsked, QuestionClosed, ReplyDelta, TurnEnd
from hark.protocol.messages import Effect
from hark.protocol.names import child_depth, child_name
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.session import Session
from hark.protocol.tool import CallContext, NobodyToAsk, Question, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

DEEPEST = 3
STOP_SECONDS = 0.8
PARTIAL_CHARACTERS = 20_000
RESULT_CHARACTERS = 1_000


class DelegateArguments(ToolArguments, frozen=True):
    """Give a task to a child agent that works on its own and returns its final answer.

    It knows nothing of this conversation: the goal must say all that it needs. Several calls run side by side.
    """

    goal: Annotated[str, doc("The whole task, complete in itself.")]
    tools: Annotated[
        tuple[str, ...] | None, doc("The names of the tools that the child may use. Without it, it has yours.")
    ] = None
    steps: Annotated[int, doc("How many model replies it may take.", ge=1)] | None = None
    seconds: Annotated[float, doc("How long it may take.", gt=0)] | None = None


class ChildOrder(Struct, frozen=True):
    """What a child may use: the tools by name, None for all of its parent's; its steps and seconds, None for no more
    than the settings say.
    """

    tools: tuple[str, ...] | None = None
    steps: int | None = None
    seconds: float | None = None


OpenChild = Callable[[str, ChildOrder], Session]


class Delegate:
    """Opens child sessions. A stop of the parent stops them; what they had said comes back; a steer lets them work on.

    A child may also be stopped alone, by its name: the parent gets what it had said, and goes on.
    """

    spec = tool_spec(DelegateArguments, "delegate", is_changing=True, grace_seconds=0.9)

    def __init__(self, open_child: OpenChild) -> None:
        """`open_child` raises ValueError for a tool that does not exist."""
        self._open_child = open_child

    async def run(self, arguments: DelegateArguments, context: CallContext) -> ToolOutput:
        """Return the child's answer. Cancelling interrupts the child and waits until it has settled."""
        if child_depth(context.session) >= DEEPEST:
            raise ToolError(f"Children may not be nested deeper than {DEEPEST}. Do this yourself.")
        order = ChildOrder(arguments.tools, arguments.steps, arguments.seconds)
        try:
            child = self._open_child(child_name(context.session, context.call), order)
        except ValueError as error:
            raise ToolError(str(error)) from error
        try:
            return await _Follow(child, context).until_done(arguments.goal)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(STOP_SECONDS, shield=True) as scope:
                await child.interrupt("its parent was stopped")
            if scope.cancelled_caught:
                context.left_running(child.id)
            raise


class _Follow:
    """Follows one child: shows what it says, and has its questions answered by the parent's person."""

    def __init__(self, child: Session, context: CallContext) -> None:
        self._child = child
        self._context = context
        self._text = ""
        self._questions: dict[str, anyio.CancelScope] = {}

    async def until_done(self, goal: str) -> ToolOutput:
        events = self._child.events()
        await self._child.say(goal, id=self._context.call)
        async with anyio.create_task_group() as tasks:
            async for event in events:
                match event:
                    case ReplyDelta(text=text):
                        self._show(text)
                    case CallStart(name=name):
                        self._show(f"\n[{name}]\n")
                    case CallEnd(effect=effect, text=text):
                        self._text += f"{text[-RESULT_CHARACTERS:]}\n[{effect}]\n"
                    case QuestionAsked():
                        scope = self._questions[event.question] = anyio.CancelScope()
                        tasks.start_soon(self._ask, event, scope)
                    case QuestionClosed(question=question) if question in self._questions:
                        self._questions.pop(question).cancel()
                    case TurnEnd(outcome=outcome):
                        tasks.cancel_scope.cancel()
                        return _output(outcome, self._text)
                    case _:
                        pass
            tasks.cancel_scope.cancel()
        return ToolOutput("The child was closed before it had an answer.", is_error=True, effect=Effect.UNKNOWN)

    def _show(self, text: str) -> None:
        self._text = (self._text + text)[-PARTIAL_CHARACTERS:]
        self._context.output(text)

    async def _ask(self, asked: QuestionAsked, scope: anyio.CancelScope) -> None:
        """Ask in the parent's name; withdrawn when the question is answered or withdrawn elsewhere."""
        with scope:
            try:
                answer = await self._context.ask(Question(f"A child asks: {asked.text}", asked.choices, asked.kind))
            except NobodyToAsk:
                return
            await self._child.answer(asked.question, answer)


def _output(outcome: Outcome, said: str) -> ToolOutput:
    """Return the child's answer; of one that did not finish, what it had said and why."""
    match outcome:
        case Completed(text):
            return ToolOutput(text)
        case Interrupted(source):
            why, effect = f"the child was stopped: {source}", Effect.CANCELLED
        case Failed(error):
            why, effect = f"the child failed: {error.message}", Effect.UNKNOWN
        case LimitReached(_, message):
            why, effect = f"the child was cut short: {message}", Effect.UNKNOWN
    return ToolOutput(f"{said}\n[{why}]".lstrip(), is_error=True, effect=effect)
