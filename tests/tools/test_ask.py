"""The `ask` tool."""

from pathlib import Path

import hark
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk
from hark.protocol.tool import Question, ToolOutput
from hark.providers.scripted import ScriptedProvider
from hark.tools.ask import NOT_ANSWERED_TEXT, AskTool
from tests.tools.fake_context import FakeContext, call_tool


async def test_the_users_answer_is_the_result(tmp_path: Path) -> None:
    context = FakeContext(tmp_path, answer="blue")
    output = await call_tool(AskTool(), {"question": "Which colour?", "choices": ["red", "blue"]}, context)
    assert output == ToolOutput("blue")
    assert context.questions == [Question("Which colour?", ("red", "blue"))]
    assert not AskTool().spec.is_changing


async def test_ask_returns_an_error_if_no_user_can_answer(tmp_path: Path) -> None:
    output = await call_tool(AskTool(), {"question": "Which colour?"}, FakeContext(tmp_path))
    assert output.is_error
    assert output.text.startswith("No user can answer in this session.")


async def test_a_call_without_a_question_is_rejected(tmp_path: Path) -> None:
    context = FakeContext(tmp_path, answer="what?")
    output = await call_tool(AskTool(), {"choices": ["yes"]}, context)
    assert output == ToolOutput(
        "ask needs question. Call it again with every required argument.", is_error=True, effect=Effect.NOT_STARTED
    )
    assert context.questions == []


async def test_a_steering_message_ends_the_wait_for_an_answer(tmp_path: Path) -> None:
    call = CallChunk(0, "c1", "ask", '{"question": "which?"}')
    provider = ScriptedProvider([[call], ["I do that"]])
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        async for event in events:
            if isinstance(event, QuestionAsked):
                break
        await session.say("never mind, do this", "steer")
        assert await session.idle() == Completed("I do that")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert result.text == NOT_ANSWERED_TEXT
