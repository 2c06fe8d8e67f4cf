"""Supervision of an MCP server: crashes, hangs, retries after failures, lazy starts, and calls to its tools."""

import asyncio
import gc
import os
import signal
import time
from pathlib import Path

import anyio
import pytest

from hark.mcp.retry_policy import RetryPolicy
from hark.mcp.server_offer import ServerState
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from tests.mcp.mcp_fixture import QUICK_RETRIES, running_servers, small_server_settings, starting_servers, wait_for_note
from tests.tools.fake_context import find_processes, is_alive
from tests.waiting import at_most, until

RECONNECTS = int(os.environ.get("HARK_MCP_RECONNECTS", "15"))


async def test_a_killed_server_fails_only_its_own_calls_and_is_restarted(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    outputs: list[ToolOutput] = []
    async with running_servers(
        tmp_path, RetryPolicy(), one=small_server_settings(env={"NOTES": str(notes)}), two=small_server_settings()
    ) as fixture:
        old_pid, other_pid = fixture.pid("one"), fixture.pid("two")

        async def wait() -> None:
            outputs.append(await fixture.call("one__wait"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await wait_for_note(notes, "call wait")
            os.kill(old_pid, signal.SIGKILL)
        assert (await fixture.call("two__echo", text="mine")).text == "mine"
        started_at = time.perf_counter()
        assert (await fixture.call("one__echo", text="back")).text == "back"
        duration = time.perf_counter() - started_at
        assert fixture.pid("one") != old_pid
        assert fixture.pid("two") == other_pid
        status = fixture.servers.status()[0]
    assert outputs[0].effect is Effect.UNKNOWN
    assert "The MCP server one ended during the call (killed by signal 9" in outputs[0].text
    assert "is being restarted" in outputs[0].text
    assert 0.2 < duration < at_most(10), "a call waits for the end of the backoff"
    assert (status.restarts, status.state) == (1, ServerState.CONNECTED)


async def test_a_server_that_dies_in_the_middle_of_a_message_is_restarted(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__half")
        assert (await fixture.call("one__echo", text="back")).text == "back"
    assert "exit code 3" in output.text
    assert output.effect is Effect.UNKNOWN


async def test_a_server_crash_is_detected_while_a_child_process_holds_its_output_open(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings("child")) as fixture:
        output = await fixture.call("one__die")
        assert (await fixture.call("one__echo", text="back")).text == "back"
        await until(lambda: len(find_processes(fixture.cookie)) == 2)  # the old server's child was killed too
    assert "killed by signal 9" in output.text


async def test_stopping_a_server_also_stops_its_daemons(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings("child")) as fixture:
        daemon = int((await fixture.call("one__child")).text)
        await fixture.call("one__echo")
        await until(lambda: is_alive(daemon) and len(find_processes(fixture.cookie)) == 3)
        started_at = time.perf_counter()
    duration = time.perf_counter() - started_at
    assert find_processes(fixture.cookie) == {}
    assert duration < at_most(3)


async def test_many_unresponsive_servers_are_stopped_in_parallel(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    servers = {f"s{number}": small_server_settings(env={"NOTES": str(notes)}) for number in range(5)}
    async with running_servers(tmp_path, **servers) as fixture:
        calls = [asyncio.create_task(fixture.call(f"{name}__deaf")) for name in servers]
        await until(lambda: notes.exists() and notes.read_text().count("call deaf") == 5)
        for call in calls:
            call.cancel()
        started_at = time.perf_counter()
    duration = time.perf_counter() - started_at
    assert find_processes(fixture.cookie) == {}
    assert duration < at_most(3), "the servers must stop in parallel"


async def test_a_dead_and_a_hung_server_delay_neither_the_start_nor_other_servers(tmp_path: Path) -> None:
    dead, hung = {"command": str(tmp_path / "nothing")}, small_server_settings("hang", start_seconds=60)
    async with starting_servers(tmp_path, dead=dead, hung=hung, good=small_server_settings()) as fixture:
        started_at = time.perf_counter()
        assert (await fixture.call("good__echo", text="here")).text == "here"
        output = await fixture.call("dead__any")
        duration = time.perf_counter() - started_at
        states = {status.name: status.state for status in fixture.servers.status()}
    assert duration < at_most(10)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "can't be started" in output.text
    assert "hark mcp test dead" in output.text
    assert states["good"] is ServerState.CONNECTED
    assert states["hung"] is ServerState.CONNECTING
    assert find_processes(fixture.cookie) == {}


async def test_a_call_that_waits_for_a_hung_server_can_be_cancelled(tmp_path: Path) -> None:
    async with starting_servers(tmp_path, hung=small_server_settings("hang")) as fixture:
        with anyio.move_on_after(0.1) as scope:
            await fixture.call("hung__any")
    assert scope.cancelled_caught


async def test_a_hung_server_is_abandoned_after_the_start_time_limit(tmp_path: Path) -> None:
    async with running_servers(
        tmp_path, RetryPolicy(tries=1), hung=small_server_settings("hang", start_seconds=0.3)
    ) as fixture:
        output = await fixture.call("hung__any")
        status = fixture.servers.status()[0]
        assert find_processes(fixture.cookie) == {}
    assert "no answer within 0.3 s" in output.text
    assert status.state is ServerState.FAILED


async def test_a_failing_server_counts_as_failed_with_one_notice_after_five_attempts(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running_servers(tmp_path, one=small_server_settings("exit", env={"NOTES": str(notes)})) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        assert notes.read_text().count("started") == 5
        assert "I can't start" in fixture.read_log("one")
        # A call retries once, and fails with the reason.
        output = await fixture.call("one__any")
        await fixture.servers.wait_for_state(ServerState.FAILED)
        assert notes.read_text().count("started") == 6
    assert "exit code 1: I can't start" in output.text
    assert len(fixture.notices) == 1
    assert "The MCP server one failed: exit code 1" in fixture.notices[0]
    assert "/mcp restart one" in fixture.notices[0]


async def test_an_invalid_handshake_is_reported_as_invalid_mcp(tmp_path: Path) -> None:
    async with running_servers(tmp_path, RetryPolicy(tries=1), one=small_server_settings("odd")) as fixture:
        output = await fixture.call("one__any")
        assert find_processes(fixture.cookie) == {}
    assert "the server sent invalid MCP: capabilities" in output.text


async def test_a_failed_server_is_not_retried_for_a_while_after_a_failed_call(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    retry_policy = RetryPolicy(first_seconds=0.01, tries=2, rest_seconds=60)
    async with running_servers(
        tmp_path, retry_policy, one=small_server_settings("exit", env={"NOTES": str(notes)})
    ) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        await fixture.call("one__any")
        await fixture.servers.wait_for_state(ServerState.FAILED)
        started_at = time.perf_counter()
        output = await fixture.call("one__any")
        duration = time.perf_counter() - started_at
        assert notes.read_text().count("started") == 3
    assert "retried a moment ago" in output.text
    assert duration < at_most(0.5)


async def test_a_call_restarts_a_failed_server_that_was_repaired(tmp_path: Path) -> None:
    program = tmp_path / "program"
    async with running_servers(tmp_path, one={**small_server_settings(), "command": str(program)}) as fixture:
        await fixture.servers.wait_for_state(ServerState.FAILED)
        program.symlink_to("/usr/bin/env")
        program.unlink()
        program.symlink_to(small_server_settings()["command"])
        assert (await fixture.call("one__echo", text="repaired")).text == "repaired"


async def test_a_lazy_server_with_a_cached_tool_list_is_started_by_its_first_call(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    settings = small_server_settings(env={"NOTES": str(notes)})
    async with running_servers(tmp_path, one=settings) as fixture:
        cached = [tool.spec for tool in fixture.servers.tools()]
    async with running_servers(tmp_path, one=settings) as fixture:
        assert [tool.spec for tool in fixture.servers.tools()] == cached
        assert fixture.servers.status()[0].state is ServerState.IDLE
        assert notes.read_text().count("started") == 1
        assert (await fixture.call("one__echo", text="hi")).text == "hi"
        assert notes.read_text().count("started") == 2


async def test_an_eager_server_is_started_despite_its_cached_tool_list(tmp_path: Path) -> None:
    settings = small_server_settings(start="eager")
    async with running_servers(tmp_path, one=settings):
        pass
    async with running_servers(tmp_path, one=settings) as fixture:
        await fixture.servers.wait_for_state(ServerState.CONNECTED)
        assert [row.state for row in fixture.servers.status()] == [ServerState.CONNECTED]


async def test_a_server_gets_its_own_environment_without_harks_api_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    monkeypatch.setenv("GIVEN", "theirs")
    async with running_servers(tmp_path, one=small_server_settings(env={"TOKEN": "a-${GIVEN}"})) as fixture:
        output = await fixture.call("one__env")
    assert '"TOKEN": "a-theirs"' in output.text
    assert fixture.cookie in output.text
    assert "sk-ours" not in output.text


async def test_an_unset_environment_variable_is_named_and_the_server_is_not_retried(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings(env={"TOKEN": "${HARK_TEST_NOT_SET}"})) as fixture:
        output = await fixture.call("one__any")
    assert "HARK_TEST_NOT_SET, which is not set" in output.text
    assert fixture.servers.status()[0].retry_seconds is None
    assert "HARK_TEST_NOT_SET" in fixture.notices[0]


def count_resources() -> tuple[int, int, int]:
    """Return the numbers of open files, tasks and objects in this process."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks()), len(gc.get_objects())


async def test_reconnects_leave_one_process_and_leak_no_resources(tmp_path: Path) -> None:
    async with running_servers(tmp_path, QUICK_RETRIES, one=small_server_settings()) as fixture:

        async def reconnect(times: int) -> None:
            for number in range(times):
                os.kill(fixture.pid("one"), signal.SIGKILL)
                await fixture.servers.wait_for_state(ServerState.WAITING)
                assert (await fixture.call("one__echo", text=str(number))).text == str(number)

        await reconnect(5)
        before = count_resources()
        await reconnect(RECONNECTS)
        after = count_resources()
        await until(lambda: len(find_processes(fixture.cookie)) == 1)
        assert fixture.servers.status()[0].restarts == RECONNECTS + 5
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 2
    assert after[2] < before[2] + 20 * RECONNECTS + 2000, "objects of old connections were not freed"
