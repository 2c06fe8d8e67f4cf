"""A call that is refused before it changes anything."""

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput


class ToolRefused(Exception):
    """The call can't be done as asked. Its text says why and what to do next; nothing was changed."""

    def as_output(self) -> ToolOutput:
        """Return it as the call's result."""
        return ToolOutput(str(self), is_error=True, effect=Effect.NOT_STARTED)


def refuse_if(problem: str | None) -> None:
    """Raise Refused with what is wrong, if anything is."""
    if problem:
        raise ToolRefused(problem)
