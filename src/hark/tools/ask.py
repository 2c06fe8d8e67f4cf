"""The tool that asks a person."""

from collections.abc import Mapping
from typing import Any

from hark.processes.start import first_of
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, NobodyToAsk, Question, ToolOutput, ToolSpec
from hark.tools.arguments import check

_SPEC = ToolSpec(
    name="ask",
    description=(
        "Ask the person a question and wait for the answer. "
        "Use it when a choice is theirs to make, or when something only they know is missing."
    ),
    parameters={
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The question, complete in itself."},
            "choices": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Answers to choose from; the person may still say something else.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
)

NOBODY = "Nobody can answer in this session. Decide by yourself what is safest, and say what you assumed."
INSTEAD = "[not answered: the person said something else instead; it comes next]"


class Ask:
    """Asks through the call's context. Cancelling withdraws the question."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Return the person's answer, or say that nobody is there. A message for the turn comes before the answer."""
        if problem := check(_SPEC, arguments):
            return ToolOutput(problem, is_error=True, effect=Effect.NOT_STARTED)
        choices = tuple(str(choice) for choice in arguments.get("choices") or ())
        outcome = ToolOutput(INSTEAD)

        async def ask() -> None:
            nonlocal outcome
            try:
                outcome = ToolOutput(await context.ask(Question(arguments["question"], choices)))
            except NobodyToAsk:
                outcome = ToolOutput(NOBODY, is_error=True, effect=Effect.NOT_STARTED)

        await first_of(ask, context.steered)
        return outcome
