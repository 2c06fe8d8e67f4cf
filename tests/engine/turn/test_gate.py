"""Arguments are repaired and normalized once, so that the journal, the user, the analysis and the tool agree."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from hark.protocol.commands import Answer
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import AssistantMessage, Effect
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, EndChunk
from hark.protocol.rules import ApprovalMode, Approvals, Rules
from hark.protocol.tool import CallContext, PredictedEffects, ToolOutput
from hark.providers.scripted import ScriptedProvider
from hark.tools.arguments import ToolArguments, tool_spec
from tests.engine.engine_fixture import make_services, run_session


class CommandArguments(ToolArguments, frozen=True):
    """Run a command."""

    command: str
    count: int = 1


class CommandTool:
    """A fake shell that records its arguments."""

    def __init__(self) -> None:
        self.spec = tool_spec(CommandArguments, "shell", is_changing=True, predict=self._predict)
        self.received: list[CommandArguments] = []
        self.predicted: list[str] = []

    def _predict(self, arguments: CommandArguments) -> PredictedEffects:
        self.predicted.append(arguments.command)
        return PredictedEffects(True, arguments.command, arguments.command)

    async def run(self, arguments: CommandArguments, context: CallContext) -> ToolOutput:
        self.received.append(arguments)
        return ToolOutput("done")


class OptionalArguments(ToolArguments, frozen=True):
    """Remove old files."""

    folder: str = "."


class OptionalTool(CommandTool):
    """A fake tool that needs no arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = tool_spec(OptionalArguments, "clean")


ASK = Rules(approvals=Approvals(ApprovalMode.ASK))


@pytest.mark.parametrize(
    "arguments",
    [
        '{"cmd": "make all"}',
        "{'command': 'make all'}",
        '{"command": "make all", "count": "1",}',
        '"{\\"command\\": \\"make all\\"}"',
        '{"command": "ls", "command": "make all"}',
        '{\n  "command": "make all"\n}',
    ],
)
async def test_the_user_the_analysis_and_the_tool_see_the_same_values(arguments: str) -> None:
    tool = CommandTool()
    provider = ScriptedProvider([[CallChunk(0, "c1", "shell", arguments)], ["ok"]])
    async with run_session(make_services(provider, tools=[tool], rules=ASK)) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        await user.proxy.answer(Answer("1", asked.question, "yes"))
        assert await user.proxy.idle() == Completed("ok")
    assert asked.text.splitlines()[0] == 'Run shell with {"command": "make all"}?'
    assert tool.predicted == ["make all"]
    assert tool.received == [CommandArguments("make all")]


@pytest.mark.parametrize(
    ("arguments", "recorded"),
    [
        ('{"cmd": "make", "count": "2"}', {"command": "make", "count": 2}),
        ("{'command': 'make'}", {"command": "make"}),
        ('{"command": "make", "count": null}', {"command": "make", "count": None}),
        ('{"command": "make", "count": "many"}', {"command": "make", "count": "many"}),
        ('{"command": "make', {}),
        ("nonsense", {}),
    ],
)
async def test_the_recorded_arguments_are_always_a_json_object(arguments: str, recorded: Mapping[str, Any]) -> None:
    tool = CommandTool()
    provider = ScriptedProvider([[CallChunk(0, "c1", "shell", arguments)], ["ok"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
    (call,) = next(message for message in provider.requests[1].messages if isinstance(message, AssistantMessage)).calls
    assert json.loads(call.arguments) == recorded
    assert structs.asdict(call)["broken"] == ("" if recorded else arguments)


@pytest.mark.parametrize("arguments", ["", '{"folder": "a', "{'folder': 'a'}", '{"folder": "a"'])
@pytest.mark.parametrize("reason", ["length", "refusal"])
async def test_a_call_of_a_reply_that_was_cut_off_is_not_repaired(arguments: str, reason: str) -> None:
    tool = OptionalTool()
    provider = ScriptedProvider([[CallChunk(0, "c1", "clean", arguments), EndChunk(reason)], ["ok"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        result = user.call_results["c1"]
    assert not tool.received
    assert result.effect is Effect.NOT_STARTED
    assert "incomplete" in result.text


@pytest.mark.parametrize("reason", ["calls", "stop"])
async def test_a_call_without_arguments_runs_with_the_defaults(reason: str) -> None:
    tool = OptionalTool()
    provider = ScriptedProvider([[CallChunk(0, "c1", "clean"), EndChunk(reason)], ["ok"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
    assert len(tool.received) == 1
