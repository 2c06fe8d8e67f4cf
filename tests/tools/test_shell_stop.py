"""Stopping the `shell` tool: no process that a command started remains."""

import asyncio
import os
import re
import time
from pathlib import Path

import anyio
import pytest

from hark.processes.cookies import ProcessOwner, current_owner
from hark.processes.launcher import Launcher
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.shell import ShellTool
from tests.tools.fake_context import FakeContext, call_tool, find_processes, is_alive
from tests.tools.stubborn_commands import IGNORES_TERM, PLAIN, SETSID_NOHUP
from tests.waiting import at_most


@pytest.fixture
def owner(tmp_path: Path) -> ProcessOwner:
    return current_owner(tmp_path)


async def cancel_when_ready(owner: ProcessOwner, workspace: Path, command: str) -> tuple[float, int]:
    """Start a command and cancel it when it prints `ready`. Return the stop time in seconds, and the printed pid."""
    context = FakeContext(workspace)
    results: list[ToolOutput] = []

    async def run() -> None:
        results.append(await call_tool(ShellTool(Launcher(owner)), {"command": command}, context))

    pid, started = 0, 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await context.wait_until_shown(lambda shown: re.search(r"ready \d+\n", shown) is not None)
        pid = int(context.shown.split()[1])
        assert is_alive(pid), "the command must run before it can be stopped"
        started = time.perf_counter()
        group.cancel_scope.cancel()
    elapsed_seconds = time.perf_counter() - started
    assert results == [], "a cancelled call has no result: the cancellation passes through"
    return elapsed_seconds, pid


@pytest.mark.parametrize(
    ("command", "limit_seconds"),
    [(PLAIN, 0.1), (SETSID_NOHUP, 0.1), (IGNORES_TERM, 0.35)],
    ids=["plain", "daemon", "ignores_term"],
)
async def test_cancelling_takes_no_longer_than_the_command_needs_to_stop(
    command: str, limit_seconds: float, owner: ProcessOwner, tmp_path: Path
) -> None:
    elapsed_seconds = [(await cancel_when_ready(owner, tmp_path, command))[0] for _ in range(3)]
    assert min(elapsed_seconds) < at_most(limit_seconds)


async def test_a_stopped_command_can_clean_up(owner: ProcessOwner, tmp_path: Path) -> None:
    script = "trap 'sleep 0.05; touch tidied; exit' TERM; echo ready $$; while :; do sleep 0.01; done"
    await cancel_when_ready(owner, tmp_path, script)
    assert (tmp_path / "tidied").exists()
    assert find_processes(owner.home) == {}


async def test_a_second_cancel_in_the_grace_period_leaves_no_process(owner: ProcessOwner, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    task = asyncio.create_task(call_tool(ShellTool(Launcher(owner)), {"command": IGNORES_TERM}, context))
    await context.wait_until_shown(lambda shown: "ready" in shown)
    pid = int(context.shown.split()[1])
    descriptor = os.pidfd_open(pid)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), at_most(1))
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)
    assert find_processes(owner.home) == {}


async def test_the_event_loop_keeps_running_while_a_command_is_stopped(owner: ProcessOwner, tmp_path: Path) -> None:
    longest_pause_seconds = 0.0

    async def measure_pauses() -> None:
        nonlocal longest_pause_seconds
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest_pause_seconds = max(longest_pause_seconds, time.perf_counter() - before)

    watcher = asyncio.create_task(measure_pauses())
    await cancel_when_ready(owner, tmp_path, IGNORES_TERM)
    watcher.cancel()
    assert 0 < longest_pause_seconds < at_most(0.2)


async def test_stopping_a_call_leaves_processes_from_other_calls_running(owner: ProcessOwner, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    other = asyncio.create_task(call_tool(ShellTool(Launcher(owner)), {"command": PLAIN}, context))
    await context.wait_until_shown(lambda shown: "ready" in shown)
    pid = int(context.shown.split()[1])
    await cancel_when_ready(owner, tmp_path, PLAIN)
    assert list(find_processes(owner.home)) == [pid]
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other
    assert not is_alive(pid)


async def test_the_time_limit_kills_the_process_tree_and_output_is_returned(
    owner: ProcessOwner, tmp_path: Path
) -> None:
    command = "echo before; setsid sleep 120 & sleep 120"
    output = await call_tool(
        ShellTool(Launcher(owner)), {"command": command, "timeout_seconds": 2}, FakeContext(tmp_path)
    )
    assert output.effect is Effect.CANCELLED
    assert output.is_error
    assert output.text.startswith("before\n[stopped after its time limit of 2 seconds")
    assert find_processes(owner.home) == {}


async def test_endless_output_ends_at_the_time_limit(owner: ProcessOwner, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    started = time.perf_counter()
    output = await call_tool(ShellTool(Launcher(owner)), {"command": "yes", "timeout_seconds": 2}, context)
    assert time.perf_counter() - started < at_most(3)
    assert output.effect is Effect.CANCELLED
    assert "characters omitted" in output.text
    assert len(output.text) < 31_000
    assert len(context.shown) < 100_000
    assert find_processes(owner.home) == {}


async def test_processes_left_by_a_finished_command_are_stopped_and_named(owner: ProcessOwner, tmp_path: Path) -> None:
    command = "nohup setsid sleep 600 >/dev/null 2>&1 & echo $!; until grep -q sleep /proc/$!/comm; do :; done"
    output = await call_tool(ShellTool(Launcher(owner)), {"command": command}, FakeContext(tmp_path))
    pid = output.text.split()[0]
    assert output.text == (f"{pid}\n[stopped 1 leftover background process: sleep 600 (pid {pid})]\n[exit code 0]")
    assert output.effect is Effect.COMPLETED
    assert not output.is_error
    assert not is_alive(int(pid))


async def test_a_background_process_that_holds_stdout_does_not_delay_the_result(
    owner: ProcessOwner, tmp_path: Path
) -> None:
    command = "sleep 600 & until grep -q sleep /proc/$!/comm; do :; done; echo done"
    started = time.perf_counter()
    output = await call_tool(ShellTool(Launcher(owner)), {"command": command}, FakeContext(tmp_path))
    assert time.perf_counter() - started < at_most(1)
    assert output.text.startswith("done\n[stopped 1 leftover background process: sleep 600")
    assert find_processes(owner.home) == {}


async def test_a_cancelled_command_leaves_no_zombie(owner: ProcessOwner, tmp_path: Path) -> None:
    _, pid = await cancel_when_ready(owner, tmp_path, PLAIN)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
