"""The `ask` tool: puts a question to the user."""

from typing import Annotated

from hark.processes.launcher import wait_for_first
from hark.protocol.tool import CallContext, NoUserToAsk, Question, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

NO_USER_TEXT = "No user can answer in this session. Choose the safest option yourself, and state your assumptions."
NOT_ANSWERED_TEXT = "[not answered: the user sent another message instead; it follows]"


class AskArguments(ToolArguments, frozen=True):
    """Ask the user a question and wait for the answer.

    Use this tool when the decision is the user's, or when you need information that only the user has.
    """

    question: Annotated[str, doc("The question. It must be understandable on its own.")]
    choices: Annotated[tuple[str, ...], doc("Suggested answers. The user may also give another answer.")] = ()


class AskTool:
    """The tool that asks the user through the call's context. Cancelling withdraws the question."""

    spec = tool_spec(AskArguments, "ask")

    async def run(self, arguments: AskArguments, context: CallContext) -> ToolOutput:
        """Return the user's answer, or an error if no user can answer. A new message for the turn ends the wait."""
        outcome = ToolOutput(NOT_ANSWERED_TEXT)

        async def ask() -> None:
            nonlocal outcome
            try:
                outcome = ToolOutput(await context.ask(Question(arguments.question, arguments.choices)))
            except NoUserToAsk:
                outcome = ToolError(NO_USER_TEXT).as_output()

        await wait_for_first(ask, context.wait_for_steer)
        return outcome
