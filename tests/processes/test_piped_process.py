"""Programs controlled over pipes, and killed with all their descendants."""

import os
from pathlib import Path

import anyio
import pytest

from hark.processes.cookies import current_owner
from hark.processes.piped_process import PipedProcess, create_spawner
from tests.tools.fake_context import find_processes
from tests.waiting import at_most

PATH = {"PATH": os.environ["PATH"]}


def start_script(home: Path, script: str, errors: list[bytes] | None = None) -> PipedProcess:
    collected = errors if errors is not None else []
    return create_spawner(current_owner(home))(["sh", "-c", script], home, PATH, collected.append)


def count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def receive_all(process: PipedProcess) -> bytes:
    output = b""
    while chunk := await process.receive():
        output += chunk
    return output


async def test_sent_data_is_echoed_and_the_program_exits_when_its_input_closes(tmp_path: Path) -> None:
    errors: list[bytes] = []
    process = start_script(tmp_path, "echo oops >&2; cat", errors)
    big = os.urandom(1_000_000).hex().encode()
    received = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.send, big)
        while len(received) < len(big):
            received += await process.receive()
    assert await process.stop() == []
    assert received == big
    assert process.exit_code == 0, "it exits cleanly when its input is closed"
    assert b"".join(errors) == b"oops\n"


async def test_a_program_that_ignores_signals_is_killed_with_its_daemons_within_a_second(tmp_path: Path) -> None:
    process = start_script(tmp_path, "trap '' TERM HUP INT; setsid sleep 1000 & echo up; while :; do sleep 100; done")
    assert await process.receive() == b"up\n"
    with anyio.fail_after(at_most(2)):
        await process.stop()
    assert process.exit_code == -9
    assert find_processes(current_owner(tmp_path).home) == {}


async def test_an_exit_is_detected_while_the_output_is_still_open(tmp_path: Path) -> None:
    process = start_script(tmp_path, "sleep 1000 & exit 3")
    with anyio.fail_after(at_most(10)):
        await process.tree.wait_until_root_exited()
    await process.stop()
    assert process.exit_code == 3


async def test_sending_to_a_program_that_closed_its_input_raises(tmp_path: Path) -> None:
    process = start_script(tmp_path, "exec 0<&-; exec 1>&-; sleep 1000")
    assert await receive_all(process) == b""
    with pytest.raises(BrokenPipeError):
        await process.send(b"x")
    await process.stop()


async def test_cancelling_a_stop_kills_the_program_immediately(tmp_path: Path) -> None:
    process = start_script(tmp_path, "trap '' TERM; echo up; while :; do sleep 100; done")
    await process.receive()
    with anyio.move_on_after(0) as scope:
        await process.stop()
    assert scope.cancelled_caught
    assert find_processes(current_owner(tmp_path).home) == {}


async def test_a_failed_start_leaves_no_open_pipes(tmp_path: Path) -> None:
    before = count_open_files()
    with pytest.raises(FileNotFoundError):
        create_spawner(current_owner(tmp_path))([str(tmp_path / "nothing")], tmp_path, PATH, print)
    assert count_open_files() == before


async def test_the_cookie_of_an_outer_call_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARK_COOKIE", "outer:1-2:x")
    process = start_script(tmp_path, "echo $HARK_COOKIE; exec cat")
    assert (await process.receive()).startswith(b"outer:1-2:x,")
    await process.stop()
