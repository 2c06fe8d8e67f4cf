"""A process tree, seen by each finder and ended by its ladder."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from hark.processes.cookies import this_process, with_cookie
from hark.processes.process_table import FindTree, find_by_proc, find_by_ps
from hark.processes.tree import ProcessTree
from tests.tools.context import is_living

# A shell function, followed by a pid: returns when that process has become a sleep.
IS_UP = "is_up() { until grep -q sleep /proc/$1/comm; do :; done; }; is_up"
FINDERS = pytest.mark.parametrize("find", [find_by_proc, find_by_ps], ids=["proc", "ps"])


@contextmanager
def running(script: str, find: FindTree) -> Generator[tuple[ProcessTree, list[int]]]:
    """Run a script that prints pids on one line when all is up; yield its tree, and the pids."""
    cookie = this_process().new_cookie()
    environment = with_cookie({"PATH": "/usr/bin:/bin"}, cookie)
    with subprocess.Popen(["bash", "-c", script], env=environment, stdout=-1, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            pids = [int(word) for word in process.stdout.readline().split()]
            yield ProcessTree(process.pid, cookie, find), pids
        finally:
            process.kill()


@FINDERS
async def test_a_group_and_its_descendants_are_seen_and_ended(find: FindTree) -> None:
    script = f"sleep 600 & a=$!; setsid sleep 601 & b=$!; {IS_UP} $a; {IS_UP} $b; echo $$ $a $b; wait"
    with running(script, find) as (tree, pids):
        assert {"sleep 600", "sleep 601"} <= {seen.command for seen in tree.members()}
        stopped = await tree.stop()
        assert {seen.pid for seen in stopped.ended} == set(pids)
        assert stopped.left == ()
        assert not any(is_living(pid) for pid in pids)
        assert tree.members() == []


@FINDERS
async def test_what_does_not_listen_is_killed(find: FindTree) -> None:
    with running("trap '' TERM; echo $$; while :; do sleep 0.01; done", find) as (tree, pids):
        assert pids[0] in {seen.pid for seen in (await tree.stop(grace_seconds=0.05)).ended}
        assert not is_living(pids[0])


@FINDERS
async def test_a_tree_that_ended_by_itself_has_nothing_to_stop(find: FindTree) -> None:
    with running("echo $$", find) as (tree, _):
        await tree.exited()
        stopped = await tree.stop()
        assert (stopped.ended, stopped.left) == ((), ())


async def test_only_proc_shows_who_left_the_group_and_lost_its_parent() -> None:
    script = f"exec 3>&1; (setsid sleep 600 >/dev/null 3>&- & {IS_UP} $!; echo $! >&3); sleep 601"
    with running(script, find_by_proc) as (tree, pids):
        assert pids[0] in {seen.pid for seen in tree.members()}
        await tree.stop()
        assert not is_living(pids[0])
