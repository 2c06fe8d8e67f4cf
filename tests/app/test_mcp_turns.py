"""Turns that use MCP servers: stopped in mid-call or in mid-question, the next one is clean and the server lives on."""

import time
from pathlib import Path

import hark
from hark.processes.cookies import this_process
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider
from tests.mcp.mcp_fixture import noted, small
from tests.tools.context import living
from tests.waiting import at_most


def use(tool: str, arguments: str = "{}") -> list[CallChunk]:
    return [CallChunk(0, "c1", tool, arguments)]


async def test_a_stop_in_an_mcp_call_settles_in_time_and_the_server_lives_on(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    provider = ScriptedProvider([use("one__wait"), use("one__pid"), ["done"]])
    mcp = {"servers": {"one": small(env={"NOTES": str(notes)})}}
    async with hark.open(
        home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=mcp, approvals={"mode": "all"}
    ) as agent:
        session = agent.session("demo")
        await session.say("go")
        await noted(notes, "call wait")
        began = time.perf_counter()
        await session.interrupt(source="user")
        took = time.perf_counter() - began
        await noted(notes, "cancelled")
        await session.say("again")
        await noted(notes, "call pid")
        await session.idle()
        assert notes.read_text().count("started") == 1
    assert took < at_most(1)
    assert len(provider.requests) == 3
    assert living(this_process(tmp_path).home) == {}


async def test_a_stop_in_a_servers_question_withdraws_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    provider = ScriptedProvider([use("one__ask"), ["next"]])
    mcp = {"servers": {"one": small(env={"NOTES": str(notes)})}}
    async with hark.open(
        home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=mcp, approvals={"mode": "all"}
    ) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        kinds: list[str] = []
        async for event in events:
            kinds.append(event.type)
            if event.type == "question.asked":
                break
        began = time.perf_counter()
        await session.interrupt(source="user")
        took = time.perf_counter() - began
        async for event in events:
            kinds.append(event.type)
            if event.type == "turn.ended":
                break
        assert '"cancel"' in await noted(notes, "answer")
        await session.say("next")
        await session.idle()
    assert kinds.index("question.closed") < kinds.index("turn.ended")
    assert took < at_most(1)
    assert len(provider.requests) == 2
