"""The `delegate` tool: assigns a task to a child session."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from hark.protocol.messages import Effect
from hark.protocol.names import child_depth, child_session_name
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.children import ChildOptions, Children, OpenChild

MAX_CHILD_DEPTH = 3
END_SECONDS = 0.05
CONTINUES = (
    "[The child {} continues in the background, because a message from the user ended this turn. Its result will be "
    "reported in a message. Don't delegate the task again.]"
)


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


class DelegateTool:
    """The tool that runs child sessions.

    Stopping the parent stops its children and returns their partial output. An interrupting message ends the call, but
    the child continues and reports when it ends, if `continues()` is true. A steer doesn't affect children.
    A child can also be stopped alone, by name: the parent receives the child's partial output and continues.
    """

    spec = tool_spec(DelegateArguments, "delegate", is_changing=True, grace_seconds=0.9)

    def __init__(self, open_child: OpenChild, children: Children, continues: Callable[[], bool]) -> None:
        """Create the tool. `open_child` opens a child session; it raises ValueError if a requested tool doesn't
        exist.
        """
        self._open_child = open_child
        self._children = children
        self._continues = continues

    async def run(self, arguments: DelegateArguments, context: CallContext) -> ToolOutput:
        """Return the child's answer. Cancelling interrupts the child and waits until it has settled, or leaves it."""
        if child_depth(context.session) >= MAX_CHILD_DEPTH:
            raise ToolError(f"Children can be nested at most {MAX_CHILD_DEPTH} levels deep. Do this task yourself.")
        options = ChildOptions(arguments.tools, arguments.steps, arguments.seconds)
        try:
            child = self._open_child(child_session_name(context.session, context.call), options)
        except ValueError as error:
            raise ToolError(str(error)) from error
        run = self._children.start(child, arguments.goal, context)
        try:
            return await asyncio.shield(run.task)
        except asyncio.CancelledError:
            if run.task.done() and not run.task.cancelled():
                return run.task.result()
            if context.is_cut_by_message and self._continues():
                run.detach()
                return ToolOutput(CONTINUES.format(child.id), effect=Effect.CONTINUES)
            if not await run.stop():
                context.report_unstopped(child.id)
            await asyncio.wait([run.task], timeout=END_SECONDS)  # it records the usage of a child that has settled
            run.task.cancel()
            raise
