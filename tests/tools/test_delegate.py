"""Children: sessions that a call starts, and that end with it."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import hark
from hark.protocol.events import QuestionAsked, QuestionClosed, ReplyDelta
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk, Chunk, Request, TextChunk
from hark.providers.scripted import Hang, Reply, ScriptedProvider, Step
from tests.waiting import at_most


def _is_child(request: Request) -> bool:
    return any(message.text == "count the files" for message in request.messages[:1])


async def test_a_child_works_in_a_session_of_its_own_and_its_answer_comes_back(tmp_path: Path) -> None:
    def reply(request: Request) -> list[Step]:
        if _is_child(request):
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


async def test_a_stop_of_the_parent_stops_its_child_and_keeps_what_it_had_said(tmp_path: Path) -> None:
    hang = Hang()

    def reply(request: Request) -> list[Step]:
        if _is_child(request):
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


def _children(goals: list[str], *answers: list[Step]) -> Reply:
    """A parent that gives these goals to children at once; each child answers with its steps."""

    def reply(request: Request) -> list[Step]:
        first = request.messages[0].text
        if first in goals:
            return answers[goals.index(first)] if len(request.messages) == 1 else [TextChunk("child done")]
        if any(isinstance(message, CallResult) for message in request.messages):
            return [TextChunk("all done")]
        return [
            CallChunk(place, f"call{place}", "delegate", f'{{"goal": "{goal}"}}') for place, goal in enumerate(goals)
        ]

    return reply


async def test_children_work_side_by_side_and_one_can_be_stopped_alone(tmp_path: Path) -> None:
    hang = Hang()
    reply = _children(["one", "two"], [TextChunk("half of it "), hang], [TextChunk("whole")])
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


async def test_a_steer_of_the_parent_leaves_its_children_at_work(tmp_path: Path) -> None:
    asked, free = asyncio.Event(), asyncio.Event()

    class Slow:
        """A model whose child waits until it is let go."""

        def __init__(self) -> None:
            self.script = ScriptedProvider([_children(["one"], [TextChunk("whole")])] * 3)

        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            if request.messages[0].text == "one":
                asked.set()
                await free.wait()
            async for chunk in self.script.stream(request):
                yield chunk

    model = Slow()
    async with hark.open(home=tmp_path, routes=[{"provider": model}]) as agent:
        session = agent.session("parent")
        await session.say("do it")
        await asked.wait()
        assert (await session.say("and be brief", "steer")).state == "steering"
        free.set()
        assert await session.idle() == Completed("all done")
        results = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert [result.text for result in results] == ["whole"]
    assert "and be brief" in [message.text for message in model.script.requests[-1].messages]


async def test_a_child_has_no_more_tools_and_steps_than_it_was_given(tmp_path: Path) -> None:
    order = '{"goal": "count the files", "tools": ["list"], "steps": 1}'

    def reply(request: Request) -> list[Step]:
        if _is_child(request):
            return [CallChunk(0, "inner", "list", "{}")]
        if len(request.messages) == 1:
            return [CallChunk(0, "call1", "delegate", order)]
        return [TextChunk("ok")]

    provider = ScriptedProvider([reply] * 4)
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        await session.say("how many?")
        assert await session.idle() == Completed("ok")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert [spec.name for spec in provider.requests[1].tools] == ["list"]
    assert "as many as it may" in result.text


async def test_a_tool_that_does_not_exist_starts_no_child(tmp_path: Path) -> None:
    order = '{"goal": "count the files", "tools": ["teleport"]}'
    provider = ScriptedProvider([[CallChunk(0, "call1", "delegate", order)], ["ok"]])
    async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
        session = agent.session("parent")
        await session.say("how many?")
        assert await session.idle() == Completed("ok")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert result.effect is Effect.NOT_STARTED
    assert "There is no tool teleport" in result.text


async def test_a_childs_question_is_asked_and_answered_at_its_parent(tmp_path: Path) -> None:
    ask = CallChunk(0, "inner", "ask", '{"question": "red or blue?", "choices": ["red", "blue"]}')
    provider = ScriptedProvider([_children(["one"], [ask])] * 4)
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


async def test_a_stop_withdraws_a_childs_question_everywhere(tmp_path: Path) -> None:
    ask = CallChunk(0, "inner", "ask", '{"question": "red or blue?"}')
    provider = ScriptedProvider([_children(["one"], [ask])] * 4)
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
