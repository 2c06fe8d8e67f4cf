"""The `delegate` tool: child sessions that end with the call that started them."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import hark
from hark.protocol.events import QuestionAsked, QuestionClosed, ReplyDelta
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk, Chunk, Request, TextChunk
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply, ScriptStep
from tests.waiting import at_most


def _is_child_request(request: Request) -> bool:
    return any(message.text == "count the files" for message in request.messages[:1])


async def test_a_child_runs_in_a_separate_session_and_its_answer_is_the_result(tmp_path: Path) -> None:
    def reply(request: Request) -> list[ScriptStep]:
        if _is_child_request(request):
            return [TextChunk("there are 3")]
        if len(request.messages) == 1:
            return [CallChunk(0, "call1", "delegate", '{"goal": "count the files"}')]
        return [TextChunk("three files")]

    provider = ScriptedProvider([reply] * 3)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        await session.say("how many?")
        assert await session.idle() == Completed("three files")
        child = await agent.session("parent.c-call1").transcript()
    assert [message.text for message in child] == ["count the files", "there are 3"]
    results = [message for message in provider.requests[-1].messages if isinstance(message, CallResult)]
    assert [result.text for result in results] == ["there are 3"]


async def test_stopping_the_parent_stops_the_child_and_returns_its_partial_output(tmp_path: Path) -> None:
    hang = Hang()

    def reply(request: Request) -> list[ScriptStep]:
        if _is_child_request(request):
            return [TextChunk("so far 2"), hang]
        return [CallChunk(0, "call1", "delegate", '{"goal": "count the files"}')]

    provider = ScriptedProvider([reply] * 2)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        events = agent.session("parent.c-call1").events()
        await session.say("how many?")
        async for event in events:
            if isinstance(event, ReplyDelta):
                break
        await hang.reached.wait()
        settled = await session.interrupt()
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert settled.timings.settle < 1000 * at_most(1)
        assert await agent.session("parent.c-call1").idle() == Interrupted("its parent was stopped")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert hang.closed.is_set()
    assert result.effect is Effect.CANCELLED
    assert "so far 2" in result.text


def _parent_with_children(goals: list[str], *answers: list[ScriptStep]) -> ScriptedReply:
    """Return a scripted parent that delegates all goals at once. Each child answers with its own steps."""

    def reply(request: Request) -> list[ScriptStep]:
        first = request.messages[0].text
        if first in goals:
            return answers[goals.index(first)] if len(request.messages) == 1 else [TextChunk("child done")]
        if any(isinstance(message, CallResult) for message in request.messages):
            return [TextChunk("all done")]
        return [
            CallChunk(number, f"call{number}", "delegate", f'{{"goal": "{goal}"}}') for number, goal in enumerate(goals)
        ]

    return reply


async def test_children_run_in_parallel_and_one_can_be_stopped_alone(tmp_path: Path) -> None:
    hang = Hang()
    reply = _parent_with_children(["one", "two"], [TextChunk("half of it "), hang], [TextChunk("whole")])
    provider = ScriptedProvider([reply] * 4)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        await session.say("both")
        await hang.reached.wait()
        assert await agent.session("parent.c-call1").idle() == Completed("whole")
        assert await agent.session("parent.c-call0").interrupt("user") is not None
        assert await session.idle() == Completed("all done")
        results = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert [result.effect for result in results] == [Effect.COMPLETED, Effect.CANCELLED]
    assert results[1].text == "half of it \n[the child was stopped: user]"


async def test_steering_the_parent_leaves_its_children_running(tmp_path: Path) -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    class SlowProvider:
        """A provider whose child replies only after `release` is set."""

        def __init__(self) -> None:
            self.script = ScriptedProvider([_parent_with_children(["one"], [TextChunk("whole")])] * 3)

        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            if request.messages[0].text == "one":
                asked.set()
                await release.wait()
            async for chunk in self.script.stream(request):
                yield chunk

    model = SlowProvider()
    async with hark.open(home=tmp_path, routes=[{"provider": model}]) as agent:
        session = agent.session("parent")
        await session.say("do it")
        await asked.wait()
        assert (await session.say("and be brief", "steer")).state == "steering"
        release.set()
        assert await session.idle() == Completed("all done")
        results = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert [result.text for result in results] == ["whole"]
    assert "and be brief" in [message.text for message in model.script.requests[-1].messages]


async def test_a_child_has_only_the_tools_and_steps_it_was_given(tmp_path: Path) -> None:
    arguments = '{"goal": "count the files", "tools": ["list"], "steps": 1}'

    def reply(request: Request) -> list[ScriptStep]:
        if _is_child_request(request):
            return [CallChunk(0, "inner", "list", "{}")]
        if len(request.messages) == 1:
            return [CallChunk(0, "call1", "delegate", arguments)]
        return [TextChunk("ok")]

    provider = ScriptedProvider([reply] * 4)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        await session.say("how many?")
        assert await session.idle() == Completed("ok")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert [spec.name for spec in provider.requests[1].tools] == ["list"]
    assert "Step limit reached" in result.text


async def test_an_unknown_tool_name_starts_no_child(tmp_path: Path) -> None:
    arguments = '{"goal": "count the files", "tools": ["teleport"]}'
    provider = ScriptedProvider([[CallChunk(0, "call1", "delegate", arguments)], ["ok"]])
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        await session.say("how many?")
        assert await session.idle() == Completed("ok")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert result.effect is Effect.NOT_STARTED
    assert "Unknown tools for a child session: teleport" in result.text


async def test_a_childs_question_is_asked_and_answered_in_the_parent_session(tmp_path: Path) -> None:
    ask = CallChunk(0, "inner", "ask", '{"question": "red or blue?", "choices": ["red", "blue"]}')
    provider = ScriptedProvider([_parent_with_children(["one"], [ask])] * 4)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        events = session.events()
        await session.say("do it")
        async for event in events:
            if isinstance(event, QuestionAsked):
                assert event.text == "A child asks: red or blue?"
                assert await session.answer(event.question, "blue") is None
                break
        assert await session.idle() == Completed("all done")
        child = await agent.session("parent.c-call0").transcript()
    assert "blue" in [message.text for message in child]


async def test_stopping_the_parent_withdraws_the_childs_question(tmp_path: Path) -> None:
    ask = CallChunk(0, "inner", "ask", '{"question": "red or blue?"}')
    provider = ScriptedProvider([_parent_with_children(["one"], [ask])] * 4)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        events = session.events()
        await session.say("do it")
        settled, reason = None, ""
        async for event in events:
            match event:
                case QuestionAsked():
                    settled = await session.interrupt()
                case QuestionClosed():
                    reason = event.reason
                    break
                case _:
                    pass
        assert await agent.session("parent.c-call0").idle() == Interrupted("its parent was stopped")
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(1)
    assert reason == "withdrawn"
