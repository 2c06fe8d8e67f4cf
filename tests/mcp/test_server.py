"""A supervised server: killed, dead, hung, parked, lazy; and what that means for calls."""

import asyncio
import gc
import os
import signal
import time
from pathlib import Path

import anyio
import pytest

from hark.mcp.failures import RetryPolicy
from hark.mcp.offers import ServerState
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from tests.mcp.mcp_fixture import QUICK, noted, running, small, starting
from tests.tools.context import is_living, living
from tests.waiting import at_most, until

RECONNECTS = int(os.environ.get("HARK_MCP_RECONNECTS", "15"))


async def test_a_killed_server_fails_its_own_calls_alone_and_comes_back(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    outputs: list[ToolOutput] = []
    async with running(tmp_path, RetryPolicy(), one=small(env={"NOTES": str(notes)}), two=small()) as world:
        old, other = world.pid("one"), world.pid("two")

        async def wait() -> None:
            outputs.append(await world.call("one__wait"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await noted(notes, "call wait")
            os.kill(old, signal.SIGKILL)
        assert (await world.call("two__echo", text="mine")).text == "mine"
        began = time.perf_counter()
        assert (await world.call("one__echo", text="back")).text == "back"
        took = time.perf_counter() - began
        assert world.pid("one") != old
        assert world.pid("two") == other
        status = world.servers.status()[0]
    assert outputs[0].effect is Effect.UNKNOWN
    assert "The MCP server one ended while the call was under way (killed by signal 9" in outputs[0].text
    assert "it is started again" in outputs[0].text
    assert 0.2 < took < at_most(10), "a call waits for the end of the back-off"
    assert (status.restarts, status.state) == (1, ServerState.CONNECTED)


async def test_a_server_that_dies_in_mid_message_is_started_again(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__half")
        assert (await world.call("one__echo", text="back")).text == "back"
    assert "exit code 3" in output.text
    assert output.effect is Effect.UNKNOWN


async def test_the_death_of_a_server_is_seen_though_its_child_holds_its_output(tmp_path: Path) -> None:
    async with running(tmp_path, one=small("child")) as world:
        output = await world.call("one__die")
        assert (await world.call("one__echo", text="back")).text == "back"
        await until(lambda: len(living(world.cookie)) == 2)  # the old server's child went with it
    assert "killed by signal 9" in output.text


async def test_at_the_end_a_server_is_gone_with_its_daemons(tmp_path: Path) -> None:
    async with running(tmp_path, one=small("child")) as world:
        daemon = int((await world.call("one__child")).text)
        await world.call("one__echo")
        await until(lambda: is_living(daemon) and len(living(world.cookie)) == 3)
        began = time.perf_counter()
    took = time.perf_counter() - began
    assert living(world.cookie) == {}
    assert took < at_most(3)


async def test_many_deaf_servers_end_side_by_side(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    servers = {f"s{number}": small(env={"NOTES": str(notes)}) for number in range(5)}
    async with running(tmp_path, **servers) as world:
        calls = [asyncio.create_task(world.call(f"{name}__deaf")) for name in servers]
        await until(lambda: notes.exists() and notes.read_text().count("call deaf") == 5)
        for call in calls:
            call.cancel()
        began = time.perf_counter()
    took = time.perf_counter() - began
    assert living(world.cookie) == {}
    assert took < at_most(3), "side by side"


async def test_a_dead_and_a_hung_server_hold_up_neither_start_nor_others(tmp_path: Path) -> None:
    dead, hung = {"command": str(tmp_path / "nothing")}, small("hang", start_seconds=60)
    async with starting(tmp_path, dead=dead, hung=hung, good=small()) as world:
        began = time.perf_counter()
        assert (await world.call("good__echo", text="here")).text == "here"
        output = await world.call("dead__any")
        took = time.perf_counter() - began
        await world.servers.settled(0.01)
        states = {one.name: one.state for one in world.servers.status()}
    assert took < at_most(10)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "can't be started" in output.text
    assert "hark mcp test dead" in output.text
    assert states["good"] is ServerState.CONNECTED
    assert states["hung"] is ServerState.CONNECTING
    assert living(world.cookie) == {}


async def test_a_call_that_waits_for_a_hung_server_can_be_cut(tmp_path: Path) -> None:
    async with starting(tmp_path, hung=small("hang")) as world:
        with anyio.move_on_after(0.1) as scope:
            await world.call("hung__any")
    assert scope.cancelled_caught


async def test_a_server_that_never_answers_is_given_up_in_time(tmp_path: Path) -> None:
    async with running(tmp_path, RetryPolicy(tries=1), hung=small("hang", start_seconds=0.3)) as world:
        output = await world.call("hung__any")
        status = world.servers.status()[0]
        assert living(world.cookie) == {}
    assert "it did not answer within 0.3 s" in output.text
    assert status.state is ServerState.PARKED


async def test_a_failing_server_is_tried_five_times_then_parked_with_one_notice(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running(tmp_path, one=small("exit", env={"NOTES": str(notes)})) as world:
        await world.servers.reached(ServerState.PARKED)
        assert notes.read_text().count("started") == 5
        assert "I can't start" in world.log("one")
        # A call tries again, once, and fails with the reason.
        output = await world.call("one__any")
        await world.servers.reached(ServerState.PARKED)
        assert notes.read_text().count("started") == 6
    assert "exit code 1: I can't start" in output.text
    assert len(world.notices) == 1
    assert "The MCP server one is given up: exit code 1" in world.notices[0]


async def test_a_server_whose_greeting_is_no_mcp_is_said_to_be_that(tmp_path: Path) -> None:
    async with running(tmp_path, RetryPolicy(tries=1), one=small("odd")) as world:
        output = await world.call("one__any")
        assert living(world.cookie) == {}
    assert "what it sent is not valid MCP: capabilities" in output.text


async def test_a_parked_server_is_left_alone_for_a_while_after_a_vain_call(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    patience = RetryPolicy(first_seconds=0.01, tries=2, rest_seconds=60)
    async with running(tmp_path, patience, one=small("exit", env={"NOTES": str(notes)})) as world:
        await world.servers.reached(ServerState.PARKED)
        await world.call("one__any")
        await world.servers.reached(ServerState.PARKED)
        began = time.perf_counter()
        output = await world.call("one__any")
        took = time.perf_counter() - began
        assert notes.read_text().count("started") == 3
    assert "tried a moment ago" in output.text
    assert took < at_most(0.5)


async def test_a_parked_server_that_is_mended_comes_back_with_a_call(tmp_path: Path) -> None:
    program = tmp_path / "program"
    async with running(tmp_path, one={**small(), "command": str(program)}) as world:
        await world.servers.reached(ServerState.PARKED)
        program.symlink_to("/usr/bin/env")
        program.unlink()
        program.symlink_to(small()["command"])
        assert (await world.call("one__echo", text="mended")).text == "mended"


async def test_a_known_server_is_started_by_its_first_call(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    settings = small(env={"NOTES": str(notes)})
    async with running(tmp_path, one=settings) as world:
        known = [tool.spec for tool in world.servers.tools()]
    async with running(tmp_path, one=settings) as world:
        assert [tool.spec for tool in world.servers.tools()] == known
        assert world.servers.status()[0].state is ServerState.IDLE
        assert notes.read_text().count("started") == 1
        assert (await world.call("one__echo", text="hi")).text == "hi"
        assert notes.read_text().count("started") == 2


async def test_an_eager_server_is_started_though_it_is_known(tmp_path: Path) -> None:
    settings = small(start="eager")
    async with running(tmp_path, one=settings):
        pass
    async with running(tmp_path, one=settings) as world:
        await world.servers.reached(ServerState.CONNECTED)
        assert [row.state for row in world.servers.status()] == [ServerState.CONNECTED]


async def test_a_server_gets_its_settings_and_the_cookie_but_no_keys_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    monkeypatch.setenv("GIVEN", "theirs")
    async with running(tmp_path, one=small(env={"TOKEN": "a-${GIVEN}"})) as world:
        output = await world.call("one__env")
    assert '"TOKEN": "a-theirs"' in output.text
    assert world.cookie in output.text
    assert "sk-ours" not in output.text


async def test_a_variable_that_is_not_set_parks_the_server_and_says_which(tmp_path: Path) -> None:
    async with running(tmp_path, one=small(env={"TOKEN": "${HARK_TEST_NOT_SET}"})) as world:
        output = await world.call("one__any")
    assert "HARK_TEST_NOT_SET, which is not set" in output.text
    assert "HARK_TEST_NOT_SET" in world.notices[0]


def held() -> tuple[int, int, int]:
    """What this process holds: open files, tasks and objects."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks()), len(gc.get_objects())


async def test_reconnects_leave_one_process_and_nothing_else_behind(tmp_path: Path) -> None:
    async with running(tmp_path, QUICK, one=small()) as world:

        async def reconnect(times: int) -> None:
            for number in range(times):
                os.kill(world.pid("one"), signal.SIGKILL)
                await world.servers.reached(ServerState.WAITING)
                assert (await world.call("one__echo", text=str(number))).text == str(number)

        await reconnect(5)
        before = held()
        await reconnect(RECONNECTS)
        after = held()
        await until(lambda: len(living(world.cookie)) == 1)
        assert world.servers.status()[0].restarts == RECONNECTS + 5
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 2
    assert after[2] < before[2] + 20 * RECONNECTS + 2000, "objects of old connections stay alive"
