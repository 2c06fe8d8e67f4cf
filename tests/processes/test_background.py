"""Background processes end with their session or the app, unless the user detached them."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hark.processes.background import BackgroundProcess, BackgroundProcessError, BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, current_owner, kill_leftover_processes
from hark.processes.launcher import Launcher
from hark.processes.shell import ShellStates
from tests.tools.fake_context import find_processes, is_alive
from tests.tools.stubborn_commands import IGNORES_TERM
from tests.waiting import at_most, until

DETACHING_PROGRAM = """
import asyncio, sys
from pathlib import Path
from hark.processes.background import BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, current_owner
from hark.processes.launcher import Launcher
from hark.processes.shell import ShellStates

async def main(home):
    background = BackgroundProcesses(
        Launcher(current_owner(home), home), ShellStates(), DetachedProcesses(home / "detached")
    )
    for name in ("detached", "other"):
        process = background.start("s", home, "echo ready; while read line; do echo got $line; done", name)
        while "ready" not in process.output.peek():
            await process.output.wait_for_more()
        print(process.pid, flush=True)
    background.detach("s", "detached")
    print("detached", flush=True)
    if sys.argv[2] == "close":
        await background.close()
    else:
        await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


def create_background(home: Path) -> BackgroundProcesses:
    return BackgroundProcesses(Launcher(current_owner(home), home), ShellStates(), DetachedProcesses(home / "detached"))


async def wait_for_output(process: BackgroundProcess, is_complete: Callable[[str], bool]) -> str:
    output = process.output
    await until(lambda: is_complete(output.peek()), changed=output.wait_for_more, shows=output.peek)
    return output.peek()


async def test_closing_stops_all_processes_concurrently_within_a_second(tmp_path: Path) -> None:
    background = create_background(tmp_path)
    processes = [background.start("s", tmp_path, IGNORES_TERM) for _ in range(6)]
    for process in processes:
        await wait_for_output(process, lambda text: "ready" in text)
    started = time.perf_counter()
    await background.close()
    assert time.perf_counter() - started < at_most(1)
    assert find_processes(current_owner(tmp_path).home) == {}
    with pytest.raises(BackgroundProcessError, match="Hark is shutting down"):
        background.start("s", tmp_path, "true")


async def test_closing_kills_a_process_without_waiting_for_its_slow_stop(tmp_path: Path) -> None:
    background = create_background(tmp_path)
    process = background.start("s", tmp_path, IGNORES_TERM)
    await wait_for_output(process, lambda text: "ready" in text)
    stop = asyncio.create_task(process.stop(grace_seconds=30))
    await asyncio.sleep(0)
    started = time.perf_counter()
    await background.close()
    assert time.perf_counter() - started < at_most(1)
    await stop
    # It was killed, but a busy machine may need a moment until it is gone.
    await until(lambda: not find_processes(current_owner(tmp_path).home), seconds=at_most(1))


async def test_a_process_that_exits_without_a_stop_is_reported_as_ended(tmp_path: Path) -> None:
    background = create_background(tmp_path)
    process = background.start("s", tmp_path, "echo bye; exit 4")
    await process.wait_until_ended()
    assert (process.exit_code, process.output.peek(), process.is_running) == (4, "bye\n", False)
    assert background.list_processes("s") == (process,)
    await background.close()


async def test_a_process_can_be_stopped_right_after_its_start(tmp_path: Path) -> None:
    background = create_background(tmp_path)
    process = background.start("s", tmp_path, "sleep 120")
    await process.stop()
    assert not is_alive(process.pid)
    await background.close()


async def test_the_numbers_of_running_and_remembered_processes_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.processes.background.MAX_RUNNING", 2)
    monkeypatch.setattr("hark.processes.background.MAX_ENDED", 2)
    background = create_background(tmp_path)
    for _ in range(5):
        await background.start("s", tmp_path, "true").wait_until_ended()
    assert len(background.list_processes("s")) == 3
    for _ in range(2):
        background.start("s", tmp_path, "sleep 120")
    with pytest.raises(BackgroundProcessError, match="2 processes are already running"):
        background.start("s", tmp_path, "sleep 120")
    await background.close()


@pytest.mark.parametrize("exit_method", ["close", "kill"])
async def test_a_detached_process_survives_a_hark_exit_or_crash_and_the_cleanup(
    exit_method: str, tmp_path: Path
) -> None:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DETACHING_PROGRAM, str(tmp_path), exit_method, stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    detached, other = [int(await owner.stdout.readline()) for _ in range(2)]
    assert await owner.stdout.readline() == b"detached\n"
    if exit_method == "kill":
        owner.send_signal(signal.SIGKILL)
    await owner.wait()
    await kill_leftover_processes(current_owner(tmp_path), DetachedProcesses(tmp_path / "detached").read_cookies())
    assert is_alive(detached)
    assert not is_alive(other)
    # without the list of detached processes none is spared, which cleans up after this test
    await kill_leftover_processes(current_owner(tmp_path))
    assert not is_alive(detached)
    assert find_processes(current_owner(tmp_path).home) == {}


async def _has_content(file: anyio.Path, text: str) -> bool:
    return await file.read_text() == text


async def test_a_detached_process_keeps_writing_output_to_its_file(tmp_path: Path) -> None:
    background = create_background(tmp_path)
    command = "echo before; until [ -e go ]; do sleep 0.01; done; echo after; touch done; read line; touch end"
    process = background.start("s", tmp_path, command, "p")
    await wait_for_output(process, lambda text: "before" in text)
    message = background.detach("s", "p")
    file = anyio.Path(message.rpartition(" ")[2])
    await background.close()
    (tmp_path / "go").touch()
    await until(lambda: _has_content(file, "before\nafter\n"))
    assert is_alive(process.pid), "its input must stay open"
    assert background.list_processes("s") == ()
    os.killpg(process.pid, signal.SIGKILL)


async def test_detaching_a_process_that_is_not_running_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackgroundProcessError, match="No process named x is running"):
        create_background(tmp_path).detach("s", "x")
