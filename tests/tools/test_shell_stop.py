"""Stopping the shell tool: everything that a command started is gone, whatever it does."""

import asyncio
import os
import re
import time
from pathlib import Path

import anyio
import pytest

from hark.processes.cookies import Owner, this_process
from hark.processes.start import Launcher
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.shell import Shell
from tests.tools.context import FakeContext, call_tool, is_living, living
from tests.tools.stubborn_commands import IGNORES_TERM, PLAIN, SETSID_NOHUP
from tests.waiting import at_most


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return this_process(tmp_path)


async def cancelled(owner: Owner, workspace: Path, command: str) -> tuple[float, int]:
    """Start a command, cancel it when it says ready, and return how long that took, and the pid that it told."""
    context = FakeContext(workspace)
    results: list[ToolOutput] = []

    async def run() -> None:
        results.append(await call_tool(Shell(Launcher(owner)), {"command": command}, context))

    pid, started = 0, 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await context.until(lambda shown: re.search(r"ready \d+\n", shown) is not None)
        pid = int(context.shown.split()[1])
        assert is_living(pid), "the command must run before it can be stopped"
        started = time.perf_counter()
        group.cancel_scope.cancel()
    took = time.perf_counter() - started
    assert results == [], "a cancelled call has no result: the cancellation passes through"
    return took, pid


@pytest.mark.parametrize(
    ("command", "limit_seconds"),
    [(PLAIN, 0.1), (SETSID_NOHUP, 0.1), (IGNORES_TERM, 0.35)],
    ids=["plain", "daemon", "deaf"],
)
async def test_a_cancel_takes_no_longer_than_the_command_needs(
    command: str, limit_seconds: float, owner: Owner, tmp_path: Path
) -> None:
    took = [(await cancelled(owner, tmp_path, command))[0] for _ in range(3)]
    assert min(took) < at_most(limit_seconds)


async def test_a_command_may_tidy_up_when_it_is_stopped(owner: Owner, tmp_path: Path) -> None:
    script = "trap 'sleep 0.05; touch tidied; exit' TERM; echo ready $$; while :; do sleep 0.01; done"
    await cancelled(owner, tmp_path, script)
    assert (tmp_path / "tidied").exists()
    assert living(owner.home) == {}


async def test_a_second_cancel_during_the_grace_still_leaves_nothing(owner: Owner, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    task = asyncio.create_task(call_tool(Shell(Launcher(owner)), {"command": IGNORES_TERM}, context))
    await context.until(lambda shown: "ready" in shown)
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
    assert living(owner.home) == {}


async def test_other_work_goes_on_while_a_command_is_being_stopped(owner: Owner, tmp_path: Path) -> None:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)

    watching = asyncio.create_task(watch())
    await cancelled(owner, tmp_path, IGNORES_TERM)
    watching.cancel()
    assert 0 < longest < at_most(0.2)


async def test_a_process_of_another_call_is_left_alone(owner: Owner, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    other = asyncio.create_task(call_tool(Shell(Launcher(owner)), {"command": PLAIN}, context))
    await context.until(lambda shown: "ready" in shown)
    pid = int(context.shown.split()[1])
    await cancelled(owner, tmp_path, PLAIN)
    assert list(living(owner.home)) == [pid]
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other
    assert not is_living(pid)


async def test_a_time_limit_ends_the_tree_and_keeps_what_was_printed(owner: Owner, tmp_path: Path) -> None:
    command = "echo before; setsid sleep 120 & sleep 120"
    output = await call_tool(Shell(Launcher(owner)), {"command": command, "timeout_seconds": 2}, FakeContext(tmp_path))
    assert output.effect is Effect.CANCELLED
    assert output.is_error
    assert output.text.startswith("before\n[stopped after its time limit of 2 seconds")
    assert living(owner.home) == {}


async def test_endless_output_ends_at_the_time_limit(owner: Owner, tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    started = time.perf_counter()
    output = await call_tool(Shell(Launcher(owner)), {"command": "yes", "timeout_seconds": 2}, context)
    assert time.perf_counter() - started < at_most(3)
    assert output.effect is Effect.CANCELLED
    assert "characters cut here" in output.text
    assert len(output.text) < 31_000
    assert len(context.shown) < 70_000
    assert living(owner.home) == {}


async def test_what_a_finished_command_left_behind_is_stopped_and_named(owner: Owner, tmp_path: Path) -> None:
    command = "nohup setsid sleep 600 >/dev/null 2>&1 & echo $!; until grep -q sleep /proc/$!/comm; do :; done"
    output = await call_tool(Shell(Launcher(owner)), {"command": command}, FakeContext(tmp_path))
    pid = output.text.split()[0]
    assert output.text == (f"{pid}\n[stopped 1 background process left behind: sleep 600 (pid {pid})]\n[exit code 0]")
    assert output.effect is Effect.COMPLETED
    assert not output.is_error
    assert not is_living(int(pid))


async def test_a_background_process_that_holds_the_output_does_not_hold_the_call(owner: Owner, tmp_path: Path) -> None:
    command = "sleep 600 & until grep -q sleep /proc/$!/comm; do :; done; echo done"
    started = time.perf_counter()
    output = await call_tool(Shell(Launcher(owner)), {"command": command}, FakeContext(tmp_path))
    assert time.perf_counter() - started < at_most(1)
    assert output.text.startswith("done\n[stopped 1 background process left behind: sleep 600")
    assert living(owner.home) == {}


async def test_no_zombie_is_left_of_a_command(owner: Owner, tmp_path: Path) -> None:
    _, pid = await cancelled(owner, tmp_path, PLAIN)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
