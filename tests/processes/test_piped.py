"""Programs that are talked with over pipes, and ended whole."""

import os
from pathlib import Path

import anyio
import pytest

from hark.processes.cookies import this_process
from hark.processes.piped import PipedProcess, spawner
from tests.tools.context import living
from tests.waiting import at_most

PATH = {"PATH": os.environ["PATH"]}


def started(home: Path, script: str, errors: list[bytes] | None = None) -> PipedProcess:
    said = errors if errors is not None else []
    return spawner(this_process(home))(["sh", "-c", script], home, PATH, said.append)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def received(process: PipedProcess) -> bytes:
    whole = b""
    while piece := await process.receive():
        whole += piece
    return whole


async def test_what_is_sent_comes_back_and_the_end_is_seen(tmp_path: Path) -> None:
    errors: list[bytes] = []
    process = started(tmp_path, "echo oops >&2; cat", errors)
    big = os.urandom(1_000_000).hex().encode()
    whole = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.send, big)
        while len(whole) < len(big):
            whole += await process.receive()
    assert await process.stop() == []
    assert whole == big
    assert process.exit_code == 0, "closing its input ended it in order"
    assert b"".join(errors) == b"oops\n"


async def test_one_that_ignores_everything_is_gone_with_its_daemons_in_a_second(tmp_path: Path) -> None:
    process = started(tmp_path, "trap '' TERM HUP INT; setsid sleep 1000 & echo up; while :; do sleep 100; done")
    assert await process.receive() == b"up\n"
    with anyio.fail_after(at_most(2)):
        await process.stop()
    assert process.exit_code == -9
    assert living(this_process(tmp_path).home) == {}


async def test_an_exit_is_seen_though_the_output_stays_open(tmp_path: Path) -> None:
    process = started(tmp_path, "sleep 1000 & exit 3")
    with anyio.fail_after(at_most(10)):
        await process.tree.exited()
    await process.stop()
    assert process.exit_code == 3


async def test_sending_to_one_that_is_gone_raises(tmp_path: Path) -> None:
    process = started(tmp_path, "exec 0<&-; exec 1>&-; sleep 1000")
    assert await received(process) == b""
    with pytest.raises(BrokenPipeError):
        await process.send(b"x")
    await process.stop()


async def test_a_cancelled_stop_kills_at_once(tmp_path: Path) -> None:
    process = started(tmp_path, "trap '' TERM; echo up; while :; do sleep 100; done")
    await process.receive()
    with anyio.move_on_after(0) as scope:
        await process.stop()
    assert scope.cancelled_caught
    assert living(this_process(tmp_path).home) == {}


async def test_a_program_that_is_not_there_leaves_no_open_pipes(tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(FileNotFoundError):
        spawner(this_process(tmp_path))([str(tmp_path / "nothing")], tmp_path, PATH, print)
    assert open_files() == before


async def test_an_outer_cookie_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARK_COOKIE", "outer:1-2:x")
    process = started(tmp_path, "echo $HARK_COOKIE; exec cat")
    assert (await process.receive()).startswith(b"outer:1-2:x,")
    await process.stop()
