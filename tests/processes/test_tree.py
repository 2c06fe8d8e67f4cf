"""Process trees: found through /proc and through ps, then stopped."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from hark.processes.cookies import current_owner, with_cookie
from hark.processes.process_table import FindTree, find_tree_in_proc, find_tree_with_ps
from hark.processes.tree import ProcessTree
from tests.tools.fake_context import is_alive

# A shell function, followed by a pid. It returns when that process has become a sleep.
WAIT_FOR_SLEEP = "is_up() { until grep -q sleep /proc/$1/comm; do :; done; }; is_up"
FINDERS = pytest.mark.parametrize("find", [find_tree_in_proc, find_tree_with_ps], ids=["proc", "ps"])


@contextmanager
def run_tree(script: str, find: FindTree) -> Generator[tuple[ProcessTree, list[int]]]:
    """Run a script that prints its processes' pids on one line once they run. Yield its process tree and the pids."""
    cookie = current_owner().new_cookie()
    environment = with_cookie({"PATH": "/usr/bin:/bin"}, cookie)
    with subprocess.Popen(["bash", "-c", script], env=environment, stdout=-1, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            pids = [int(word) for word in process.stdout.readline().split()]
            yield ProcessTree(process.pid, cookie, find), pids
        finally:
            process.kill()


@FINDERS
async def test_a_process_group_and_its_descendants_are_found_and_stopped(find: FindTree) -> None:
    script = f"sleep 600 & a=$!; setsid sleep 601 & b=$!; {WAIT_FOR_SLEEP} $a; {WAIT_FOR_SLEEP} $b; echo $$ $a $b; wait"
    with run_tree(script, find) as (tree, pids):
        assert {"sleep 600", "sleep 601"} <= {process.command for process in tree.members()}
        stopped = await tree.stop()
        assert {process.pid for process in stopped.ended} == set(pids)
        assert stopped.left == ()
        assert not any(is_alive(pid) for pid in pids)
        assert tree.members() == []


@FINDERS
async def test_processes_that_ignore_sigterm_are_killed(find: FindTree) -> None:
    with run_tree("trap '' TERM; echo $$; while :; do sleep 0.01; done", find) as (tree, pids):
        assert pids[0] in {process.pid for process in (await tree.stop(grace_seconds=0.05)).ended}
        assert not is_alive(pids[0])


@FINDERS
async def test_stopping_a_tree_that_has_ended_finds_no_processes(find: FindTree) -> None:
    with run_tree("echo $$", find) as (tree, _):
        await tree.wait_until_root_exited()
        stopped = await tree.stop()
        assert (stopped.ended, stopped.left) == ((), ())


async def test_an_orphan_outside_the_process_group_is_found_through_proc() -> None:
    script = f"exec 3>&1; (setsid sleep 600 >/dev/null 3>&- & {WAIT_FOR_SLEEP} $!; echo $! >&3); sleep 601"
    with run_tree(script, find_tree_in_proc) as (tree, pids):
        assert pids[0] in {process.pid for process in tree.members()}
        await tree.stop()
        assert not is_alive(pids[0])
