"""Turns that use MCP servers: after a stop during a call or a question, the server keeps running."""

import time
from pathlib import Path

import hark
from hark.processes.cookies import current_owner
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider
from tests.mcp.mcp_fixture import small_server_settings, wait_for_note
from tests.tools.fake_context import find_processes
from tests.waiting import at_most


def tool_call(tool: str, arguments: str = "{}") -> list[CallChunk]:
    return [CallChunk(0, "c1", tool, arguments)]


async def test_a_stop_during_an_mcp_call_settles_within_a_second_and_the_server_keeps_running(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    provider = ScriptedProvider([tool_call("one__wait"), tool_call("one__pid"), ["done"]])
    mcp = {"servers": {"one": small_server_settings(env={"NOTES": str(notes)})}}
    async with hark.open(
        home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=mcp, approvals={"mode": "all"}
    ) as agent:
        session = agent.session("demo")
        await session.say("go")
        await wait_for_note(notes, "call wait")
        began = time.perf_counter()
        await session.interrupt(source="user")
        took = time.perf_counter() - began
        await wait_for_note(notes, "cancelled")
        await session.say("again")
        await wait_for_note(notes, "call pid")
        await session.idle()
        assert notes.read_text().count("started") == 1
    assert took < at_most(1)
    assert len(provider.requests) == 3
    assert find_processes(current_owner(tmp_path).home) == {}


async def test_a_stop_during_an_mcp_servers_question_withdraws_the_question(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    provider = ScriptedProvider([tool_call("one__ask"), ["next"]])
    mcp = {"servers": {"one": small_server_settings(env={"NOTES": str(notes)})}}
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
        assert '"cancel"' in await wait_for_note(notes, "answer")
        await session.say("next")
        await session.idle()
    assert kinds.index("question.closed") < kinds.index("turn.ended")
    assert took < at_most(1)
    assert len(provider.requests) == 2
