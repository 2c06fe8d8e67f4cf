"""Questions stay open until answered or withdrawn by a stop, and messages never answer them."""

import asyncio

from hark.protocol.commands import Answer
from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.messages import Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.rules import Rules
from hark.protocol.tool import CallContext, NoUserToAsk, Question, ToolOutput
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import FakeTool, call_chunks, make_services, run_session
from tests.waiting import at_most


def asking_tool() -> FakeTool:
    async def work(context: CallContext) -> ToolOutput:
        try:
            return ToolOutput(await context.ask(Question("which?", ("a", "b"))))
        except NoUserToAsk:
            return ToolOutput("no user")

    return FakeTool("ask", work)


async def test_a_question_accepts_one_answer_and_closes() -> None:
    async with run_session(
        make_services(ScriptedProvider([call_chunks("ask"), ["ok"]]), tools=[asking_tool()])
    ) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        assert await user.proxy.answer(Answer("1", asked.question, "b")) is None
        again = await user.proxy.answer(Answer("2", asked.question, "a"))
        assert await user.proxy.idle() == Completed("ok")
        assert user.call_results["c1"].text == "b"
        closed = await user.recorder.wait_for(QuestionClosed)
    assert (asked.text, asked.choices) == ("which?", ("a", "b"))
    assert (closed.question, closed.reason) == (asked.question, "answered")
    assert again is not None
    assert again.code == "not_asked"


async def test_a_stop_withdraws_an_open_question_and_the_next_text_is_a_message() -> None:
    provider = ScriptedProvider([call_chunks("ask"), ["heard you"]])
    async with run_session(make_services(provider, tools=[asking_tool()])) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        async with asyncio.timeout(at_most(1)):
            settled = await user.stop()
        closed = await user.recorder.wait_for(QuestionClosed)
        late = await user.proxy.answer(Answer("1", asked.question, "a"))
        await user.say("a", message_id="next")
        assert await user.proxy.idle() == Completed("heard you")
        assert user.call_results["c1"].effect == Effect.CANCELLED
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert closed.reason == "withdrawn"
    assert late is not None
    assert UserMessage("next", "a") in provider.requests[1].messages


async def test_a_message_during_a_question_is_not_an_answer() -> None:
    provider = ScriptedProvider([call_chunks("ask"), ["redirected"]])
    async with run_session(make_services(provider, tools=[asking_tool()])) as user:
        await user.say("go")
        await user.recorder.wait_for(QuestionAsked)
        assert (await user.say("b", message_id="x")).state == "interrupting"
        assert await user.proxy.idle() == Completed("redirected")
        assert user.call_results["c1"].effect == Effect.CANCELLED
    assert UserMessage("x", "b") in provider.requests[1].messages


async def test_a_question_is_refused_without_asking_the_user_when_the_rules_forbid_questions() -> None:
    services = make_services(
        ScriptedProvider([call_chunks("ask"), ["ok"]]), tools=[asking_tool()], rules=Rules(can_ask=False)
    )
    async with run_session(services) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        assert user.call_results["c1"].text == "no user"
    assert user.recorder.of_kind(QuestionAsked) == []


async def test_an_answer_stays_in_the_transcript_when_a_stop_cancels_the_tool_that_asked() -> None:
    answered = asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        await context.ask(Question("which?"))
        answered.set()
        await asyncio.Event().wait()
        return ToolOutput("never")

    async with run_session(
        make_services(ScriptedProvider([call_chunks("ask"), ["ok"]]), tools=[FakeTool("ask", work)])
    ) as user:
        await user.say("go")
        asked = await user.recorder.wait_for(QuestionAsked)
        assert await user.proxy.answer(Answer("1", asked.question, "the blue one")) is None
        await answered.wait()
        await user.stop()
        assert user.call_results["c1"].text == "The answer was: the blue one\n[cancelled]"
        assert user.call_results["c1"].effect is Effect.CANCELLED
