"""All processes that this process started are killed synchronously, except the detached ones."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupts.interrupt_fixture import is_alive
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

# Starts four kinds of processes, and kills its own processes when asked.
PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from hark.processes.cookies import current_owner, with_cookie
from hark.processes.own_processes import OwnProcesses

home = Path(sys.argv[1])
owner = current_owner(home)
detached_cookie = (home / "detached").read_text() % (owner.pid, owner.started)
(home / "detached").write_text(detached_cookie)

def start(command, cookie=None):
    environment = with_cookie(os.environ, cookie) if cookie else {}
    return subprocess.Popen(["bash", "-c", command], env=environment, start_new_session=True)

start("trap '' TERM; sleep 3600 & echo $! > child; wait")
start("echo $$ > marked; exec sleep 3600", owner.new_cookie())
# An orphan that is found only by its cookie.
start("(setsid sleep 3600 & echo $! > orphan); true", owner.new_cookie()).wait()
start("echo $$ > spared; exec sleep 3600", detached_cookie)
input()
OwnProcesses(home).kill()
os._exit(0)
"""


async def test_the_kill_ends_descendants_and_cookie_carriers_and_spares_detached_processes(tmp_path: Path) -> None:
    (tmp_path / "detached").write_text("home:%d-%d:0123456789abcdef")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, str(tmp_path)), cwd=tmp_path, stdin=subprocess.PIPE
    )
    names = ("child", "marked", "orphan", "spared")
    await until(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in names))
    pids = {name: int((tmp_path / name).read_text()) for name in names}
    try:
        assert all(map(is_alive, pids.values()))
        await process.communicate(b"\n")
        assert [name for name, pid in pids.items() if is_alive(pid)] == ["spared"]
    finally:
        for pid in filter(is_alive, pids.values()):
            os.kill(pid, signal.SIGKILL)
