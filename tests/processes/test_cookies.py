"""Cleaning up processes after a crash, and the cookies that identify them."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hark.processes.cookies import (
    ProcessOwner,
    current_owner,
    innermost_owner,
    kill_leftover_processes,
    read_start_time,
    with_cookie,
)
from tests.tools.fake_context import find_processes, is_alive

OWNER_PROGRAM = """
import asyncio, sys
from pathlib import Path
from hark.processes.cookies import current_owner
from hark.processes.launcher import Launcher
from hark.tools.shell import ShellTool
from tests.tools.fake_context import FakeContext, call_tool

async def main():
    context = FakeContext(Path(sys.argv[1]))
    shell = ShellTool(Launcher(current_owner(Path(sys.argv[1]))))
    call = asyncio.create_task(call_tool(shell, {"command": sys.argv[2]}, context))
    await context.wait_until_shown(lambda shown: shown.count("ready") == 2)
    print(context.shown, flush=True)
    await call

asyncio.run(main())
"""
COMMAND = "setsid sh -c 'echo ready $$; exec sleep 600' & (echo ready $BASHPID; exec sleep 600)"


async def start_owner(home: Path) -> tuple[asyncio.subprocess.Process, list[int]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER_PROGRAM, str(home), COMMAND, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    lines = [await process.stdout.readline() for _ in range(2)]
    return process, [int(line.split()[1]) for line in lines]


async def test_processes_of_a_killed_owner_are_killed(tmp_path: Path) -> None:
    process, pids = await start_owner(tmp_path)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert all(is_alive(pid) for pid in pids), "a crash leaves its commands running"
    killed = await kill_leftover_processes(current_owner(tmp_path))
    assert set(pids) <= {seen.pid for seen in killed}
    assert not any(is_alive(pid) for pid in pids)
    assert find_processes(current_owner(tmp_path).home) == {}


async def test_processes_of_a_live_owner_or_another_home_are_not_killed(tmp_path: Path) -> None:
    process, pids = await start_owner(tmp_path)
    assert await kill_leftover_processes(current_owner(tmp_path)) == []
    assert all(is_alive(pid) for pid in pids)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await kill_leftover_processes(current_owner(tmp_path / "elsewhere")) == []
    assert all(is_alive(pid) for pid in pids), "processes of another home must not be killed"
    await kill_leftover_processes(current_owner(tmp_path))
    assert not any(is_alive(pid) for pid in pids)


def test_an_owner_with_the_same_pid_but_another_start_time_is_dead() -> None:
    owner = current_owner()
    assert owner.is_alive
    assert not ProcessOwner(owner.home, owner.pid, owner.started + 1).is_alive


def test_a_zombie_owner_process_counts_as_dead() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert read_start_time(child) is None
    os.waitpid(child, 0)


async def test_the_cleanup_never_kills_its_own_process(tmp_path: Path) -> None:
    """A program started by a dead owner's command carries the owner's cookie, and may run the cleanup itself."""
    dead = ProcessOwner(current_owner(tmp_path).home, os.getpid(), 1)
    program = (
        "import asyncio, sys; from pathlib import Path; from hark.processes.cookies import current_owner;"
        "from hark.processes.cookies import kill_leftover_processes as kill;"
        "print(asyncio.run(kill(current_owner(Path(sys.argv[1])))))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", program, str(tmp_path)),
        env=with_cookie(os.environ, dead.new_cookie()),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert (process.returncode, output) == (0, b"[]\n")


def test_a_cookie_identifies_its_owner() -> None:
    owner = ProcessOwner("home", 12, 345)
    assert innermost_owner(owner.new_cookie()) == owner
    assert owner.new_cookie() != owner.new_cookie()
    assert innermost_owner("something else") is None
    assert read_start_time(os.getpid()) is not None


def test_the_cookie_of_an_outer_call_is_preserved() -> None:
    outer, inner = ProcessOwner("outer", 1, 2), ProcessOwner("inner", 3, 4)
    first = with_cookie({"PATH": "/bin"}, outer.new_cookie())
    second = with_cookie(first, inner.new_cookie())
    assert second["HARK_COOKIE"].startswith(first["HARK_COOKIE"] + ",")
    assert innermost_owner(second["HARK_COOKIE"]) == inner
    assert second["PATH"] == "/bin"
