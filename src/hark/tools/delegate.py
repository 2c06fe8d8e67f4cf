"""The tool that gives work to a child: a session of its own that ends with the call."""

from collections.abc import Callable, Mapping
from typing import Any

import anyio

from hark.protocol.events import CallStart, ReplyDelta, TurnEnd
from hark.protocol.messages import Effect
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.surface import SessionPort
from hark.protocol.tool import CallContext, ToolOutput, ToolSpec

DEEPEST = 3
CHILD = ".c-"
STOP_SECONDS = 0.8

_SPEC = ToolSpec(
    name="delegate",
    description=(
        "Give a task to a child agent that works on its own and returns its final answer. "
        "It knows nothing of this conversation: the goal must say all that it needs. Several calls run side by side."
    ),
    parameters={
        "type": "object",
        "properties": {"goal": {"type": "string", "description": "The whole task, complete in itself."}},
        "required": ["goal"],
        "additionalProperties": False,
    },
    is_changing=True,
    grace_seconds=0.9,
)


class Delegate:
    """Opens child sessions by name. A stop of the parent stops them; what they had said comes back."""

    def __init__(self, open_session: Callable[[str], SessionPort]) -> None:
        self._open_session = open_session

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Return the child's answer. Cancelling interrupts the child and waits until it has settled."""
        if context.session.count(CHILD) >= DEEPEST:
            text = f"Children may not be nested deeper than {DEEPEST}. Do this yourself."
            return ToolOutput(text, is_error=True, effect=Effect.NOT_STARTED)
        child = self._open_session(f"{context.session}{CHILD}{context.call}")
        events = child.events()
        try:
            await child.say(arguments["goal"], id=context.call)
            async for event in events:
                match event:
                    case ReplyDelta(text=text):
                        context.output(text)
                    case CallStart(name=name):
                        context.output(f"\n[{name}]\n")
                    case TurnEnd(outcome=outcome):
                        return _output(outcome)
                    case _:
                        pass
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(STOP_SECONDS, shield=True) as scope:
                await child.interrupt("its parent was stopped")
            if scope.cancelled_caught:
                context.left_running(child.id)
            raise
        return ToolOutput("The child was closed before it had an answer.", is_error=True, effect=Effect.UNKNOWN)


def _output(outcome: Outcome) -> ToolOutput:
    match outcome:
        case Completed(text):
            return ToolOutput(text)
        case Interrupted(source):
            return ToolOutput(f"[the child was stopped: {source}]", is_error=True, effect=Effect.CANCELLED)
        case Failed(error):
            return ToolOutput(f"[the child failed: {error.message}]", is_error=True, effect=Effect.UNKNOWN)
        case LimitReached(_, message):
            return ToolOutput(f"[the child was cut short: {message}]", is_error=True, effect=Effect.UNKNOWN)
