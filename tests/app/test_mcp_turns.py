"""Turns that use MCP servers: stops during calls and questions, and waits for servers that are starting."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import hark
from hark.processes.cookies import current_owner
from hark.protocol.commands import Delivery
from hark.protocol.events import AnyEvent, Notice, TurnEnd
from hark.protocol.outcomes import Interrupted
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider
from hark.tools.delegate import ChildOptions
from tests.mcp.mcp_fixture import small_server_settings, wait_for_note
from tests.tools.fake_context import find_processes
from tests.waiting import at_most, until


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


def slow_server(folder: Path, **settings: Any) -> dict[str, Any]:
    """Return the settings of one server that starts when the file `may_start` exists."""
    return {"servers": {"one": small_server_settings("slow", env={"MAY_START": str(folder / "may_start")}, **settings)}}


async def wait_for_notice(events: AsyncIterator[AnyEvent], text: str) -> None:
    async for event in events:
        if isinstance(event, Notice) and text in event.text:
            return


def offers_server(provider: ScriptedProvider, request: int) -> bool:
    return any(tool.name.startswith("one__") for tool in provider.requests[request].tools)


async def test_the_first_turn_waits_for_a_starting_server_and_takes_steers_sent_meanwhile(tmp_path: Path) -> None:
    provider = ScriptedProvider([["done"]])
    async with hark.open(
        home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=slow_server(tmp_path)
    ) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        await wait_for_notice(events, "Waiting for MCP servers to start: one (at most 10 s).")
        assert provider.requests == []
        await session.say("use tabs", Delivery.STEER)
        (tmp_path / "may_start").touch()
        async for event in events:
            if isinstance(event, TurnEnd):
                assert [span.kind for span in event.timings.spans] == ["pause", "model"]
                break
    assert offers_server(provider, 0)
    assert len(provider.requests) == 1
    assert "use tabs" in str(provider.requests[0].messages)


@pytest.mark.parametrize("is_message", [False, True], ids=["stop", "interrupting message"])
async def test_a_turn_that_waits_for_a_server_can_be_interrupted(tmp_path: Path, is_message: bool) -> None:
    provider = ScriptedProvider([["done"]])
    async with hark.open(
        home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=slow_server(tmp_path)
    ) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("first")
        await wait_for_notice(events, "Waiting for MCP servers")
        began = time.perf_counter()
        if is_message:
            await session.say("second", Delivery.INTERRUPT)
        else:
            await session.interrupt(source="user")
        async for event in events:
            if isinstance(event, TurnEnd):
                assert isinstance(event.outcome, Interrupted)
                break
        took = time.perf_counter() - began
        (tmp_path / "may_start").touch()
        if not is_message:
            await session.say("second")
        await session.idle()
    assert took < at_most(1)
    assert len(provider.requests) == 1
    assert offers_server(provider, 0)


async def test_a_server_that_comes_up_during_a_turn_has_its_tools_in_the_next_step_with_a_notice(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider([tool_call("shell", '{"command": "while [ ! -e up ]; do sleep 0.02; done"}'), ["done"]])
    async with hark.open(
        home=tmp_path,
        routes=[{"provider": provider}],
        workspace=tmp_path,
        mcp={"wait_seconds": 0.1, **slow_server(tmp_path)},
        approvals={"mode": "all"},
    ) as agent:
        session = agent.session("demo")
        events = session.events()
        await session.say("go")
        await wait_for_notice(events, "Continuing without the MCP server one: it is still starting.")
        (tmp_path / "may_start").touch()
        await until(lambda: agent.servers()[0].state == "connected")
        (tmp_path / "up").touch()
        await wait_for_notice(events, "The MCP server one is ready.")
        await session.idle()
    assert not offers_server(provider, 0)
    assert offers_server(provider, 1)


async def test_the_restart_command_restarts_a_server_and_publishes_the_result(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    provider = ScriptedProvider([["done"]])
    mcp = {
        "servers": {"one": small_server_settings(env={"NOTES": str(notes)}), "off": {"command": "x", "enabled": False}}
    }
    async with hark.open(home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=mcp) as agent:
        session = agent.session("demo")
        events = session.events()
        await wait_for_note(notes, "started")
        await until(lambda: agent.servers()[0].state == "connected")
        await session.say("/mcp restart one")
        await wait_for_notice(events, "Restarting the MCP server one.")
        await wait_for_notice(events, "The MCP server one is connected. It has ")
        assert notes.read_text().count("started") == 2
        await session.say("/mcp restart off")
        await wait_for_notice(events, "disabled in the settings")
        await session.say("/mcp restart")
        await wait_for_notice(events, "Configured servers: one, off.")
        await session.say("/mcp")
        await wait_for_notice(events, "one: connected, ")


async def test_a_child_that_cannot_use_a_starting_server_does_not_wait_for_it(tmp_path: Path) -> None:
    provider = ScriptedProvider([["done"]])
    async with hark.open(
        home=tmp_path, routes=[{"provider": provider}], workspace=tmp_path, mcp=slow_server(tmp_path, wait_seconds=60)
    ) as agent:
        child = agent.child("demo.child", ChildOptions(tools=("memory",)))
        await child.say("go")
        await child.idle()
    assert len(provider.requests) == 1
