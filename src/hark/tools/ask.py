"""The tool that asks a person."""

from typing import Annotated

from hark.processes.start import first_of
from hark.protocol.tool import CallContext, NobodyToAsk, Question, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

NOBODY = "Nobody can answer in this session. Decide by yourself what is safest, and say what you assumed."
INSTEAD = "[not answered: the person said something else instead; it comes next]"


class AskArguments(ToolArguments, frozen=True):
    """Ask the person a question and wait for the answer.

    Use it when a choice is theirs to make, or when something only they know is missing.
    """

    question: Annotated[str, doc("The question, complete in itself.")]
    choices: Annotated[tuple[str, ...], doc("Answers to choose from; the person may still say something else.")] = ()


class Ask:
    """Asks through the call's context. Cancelling withdraws the question."""

    spec = tool_spec(AskArguments, "ask")

    async def run(self, arguments: AskArguments, context: CallContext) -> ToolOutput:
        """Return the person's answer, or say that nobody is there. A message for the turn comes before the answer."""
        outcome = ToolOutput(INSTEAD)

        async def ask() -> None:
            nonlocal outcome
            try:
                outcome = ToolOutput(await context.ask(Question(arguments.question, arguments.choices)))
            except NobodyToAsk:
                outcome = ToolError(NOBODY).as_output()

        await first_of(ask, context.steered)
        return outcome
