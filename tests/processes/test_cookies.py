"""Sweeping up after a crash, and the cookies that make it possible."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hark.processes.cookies import Owner, nearest_owner, start_time, sweep, this_process, with_cookie
from tests.tools.context import is_living, living

OWNER_PROGRAM = """
import asyncio, sys
from pathlib import Path
from hark.processes.cookies import this_process
from hark.processes.start import Launcher
from hark.tools.shell import Shell
from tests.tools.context import FakeContext, call_tool

async def main():
    context = FakeContext(Path(sys.argv[1]))
    shell = Shell(Launcher(this_process(Path(sys.argv[1]))))
    call = asyncio.create_task(call_tool(shell, {"command": sys.argv[2]}, context))
    await context.until(lambda shown: shown.count("ready") == 2)
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


async def test_what_a_killed_owner_left_is_ended(tmp_path: Path) -> None:
    process, pids = await start_owner(tmp_path)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert all(is_living(pid) for pid in pids), "a crash leaves its commands running"
    swept = await sweep(this_process(tmp_path))
    assert set(pids) <= {seen.pid for seen in swept}
    assert not any(is_living(pid) for pid in pids)
    assert living(this_process(tmp_path).home) == {}


async def test_what_a_living_owner_runs_is_left_alone(tmp_path: Path) -> None:
    process, pids = await start_owner(tmp_path)
    assert await sweep(this_process(tmp_path)) == []
    assert all(is_living(pid) for pid in pids)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await sweep(this_process(tmp_path / "elsewhere")) == []
    assert all(is_living(pid) for pid in pids), "another home's processes are not ours to end"
    await sweep(this_process(tmp_path))
    assert not any(is_living(pid) for pid in pids)


def test_a_process_that_took_the_pid_of_a_dead_owner_is_not_that_owner() -> None:
    now = this_process()
    assert now.is_alive
    assert not Owner(now.home, now.pid, now.started + 1).is_alive


def test_an_owner_that_nobody_reaped_is_dead() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert start_time(child) is None
    os.waitpid(child, 0)


async def test_sweeping_never_ends_the_sweeper(tmp_path: Path) -> None:
    """A program that a dead owner's command started carries its cookie, and sweeps too when it starts."""
    dead = Owner(this_process(tmp_path).home, os.getpid(), 1)
    program = (
        "import asyncio, sys; from pathlib import Path; from hark.processes.cookies import this_process;"
        "from hark.processes.cookies import sweep; print(asyncio.run(sweep(this_process(Path(sys.argv[1])))))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", program, str(tmp_path)),
        env=with_cookie(os.environ, dead.new_cookie()),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert (process.returncode, output) == (0, b"[]\n")


def test_a_cookie_names_its_owner() -> None:
    owner = Owner("home", 12, 345)
    assert nearest_owner(owner.new_cookie()) == owner
    assert owner.new_cookie() != owner.new_cookie()
    assert nearest_owner("something else") is None
    assert start_time(os.getpid()) is not None


def test_the_cookie_of_an_outer_call_is_kept() -> None:
    outer, inner = Owner("outer", 1, 2), Owner("inner", 3, 4)
    first = with_cookie({"PATH": "/bin"}, outer.new_cookie())
    second = with_cookie(first, inner.new_cookie())
    assert second["HARK_COOKIE"].startswith(first["HARK_COOKIE"] + ",")
    assert nearest_owner(second["HARK_COOKIE"]) == inner
    assert second["PATH"] == "/bin"
