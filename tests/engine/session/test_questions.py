"""Questions: open until answered, withdrawn by a stop, and never answered by a message."""

import asyncio

from hark.protocol.commands import Answer
from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.messages import Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.rules import Rules
from hark.protocol.tool import CallContext, NobodyToAsk, Question, ToolOutput
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import FakeTool, asks_for, make_bench, running
from tests.waiting import at_most


def asking() -> FakeTool:
    async def work(context: CallContext) -> ToolOutput:
        try:
            return ToolOutput(await context.ask(Question("which?", ("a", "b"))))
        except NobodyToAsk:
            return ToolOutput("nobody")

    return FakeTool("ask", work)


async def test_an_answer_is_taken_once_and_the_question_closes() -> None:
    async with running(make_bench(ScriptedProvider([asks_for("ask"), ["ok"]]), tools=[asking()])) as person:
        await person.say("go")
        asked = await person.screen.shows(QuestionAsked)
        assert await person.door.answer(Answer("1", asked.question, "b")) is None
        again = await person.door.answer(Answer("2", asked.question, "a"))
        assert await person.door.idle() == Completed("ok")
        assert person.results["c1"].text == "b"
        closed = await person.screen.shows(QuestionClosed)
    assert (asked.text, asked.choices) == ("which?", ("a", "b"))
    assert (closed.question, closed.reason) == (asked.question, "answered")
    assert again is not None
    assert again.code == "not_asked"


async def test_failure_9_a_stop_during_a_question_withdraws_it_and_the_next_message_is_a_message() -> None:
    provider = ScriptedProvider([asks_for("ask"), ["heard you"]])
    async with running(make_bench(provider, tools=[asking()])) as person:
        await person.say("go")
        asked = await person.screen.shows(QuestionAsked)
        async with asyncio.timeout(at_most(1)):
            settled = await person.stop()
        closed = await person.screen.shows(QuestionClosed)
        late = await person.door.answer(Answer("1", asked.question, "a"))
        await person.say("a", name="next")
        assert await person.door.idle() == Completed("heard you")
        assert person.results["c1"].effect == Effect.CANCELLED
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert closed.reason == "withdrawn"
    assert late is not None
    assert UserMessage("next", "a") in provider.requests[1].messages


async def test_a_message_during_a_question_is_no_answer() -> None:
    provider = ScriptedProvider([asks_for("ask"), ["redirected"]])
    async with running(make_bench(provider, tools=[asking()])) as person:
        await person.say("go")
        await person.screen.shows(QuestionAsked)
        assert (await person.say("b", name="x")).state == "interrupting"
        assert await person.door.idle() == Completed("redirected")
        assert person.results["c1"].effect == Effect.CANCELLED
    assert UserMessage("x", "b") in provider.requests[1].messages


async def test_with_nobody_there_a_tool_is_told_so_at_once() -> None:
    bench = make_bench(ScriptedProvider([asks_for("ask"), ["ok"]]), tools=[asking()], rules=Rules(can_ask=False))
    async with running(bench) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("ok")
        assert person.results["c1"].text == "nobody"
    assert person.screen.all(QuestionAsked) == []


async def test_an_answer_stays_in_the_transcript_when_a_stop_cancels_the_tool_that_asked() -> None:
    got = asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        await context.ask(Question("which?"))
        got.set()
        await asyncio.Event().wait()
        return ToolOutput("never")

    async with running(
        make_bench(ScriptedProvider([asks_for("ask"), ["ok"]]), tools=[FakeTool("ask", work)])
    ) as person:
        await person.say("go")
        asked = await person.screen.shows(QuestionAsked)
        assert await person.door.answer(Answer("1", asked.question, "the blue one")) is None
        await got.wait()
        await person.stop()
        assert person.results["c1"].text == "The answer was: the blue one\n[cancelled]"
        assert person.results["c1"].effect is Effect.CANCELLED
