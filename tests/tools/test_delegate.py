"""Children: sessions that a call starts, and that end with it."""

from pathlib import Path

import hark
from hark.protocol.events import ReplyDelta
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk, Request, TextChunk
from hark.providers.scripted import Hang, ScriptedProvider, Step


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
        assert settled.timings.settle < 1000
        assert await agent.session("parent.c-call1").idle() == Interrupted("its parent was stopped")
        [result] = [message for message in await session.transcript() if isinstance(message, CallResult)]
    assert hang.closed.is_set()
    assert result.effect is Effect.CANCELLED
    assert "so far 2" in result.text
