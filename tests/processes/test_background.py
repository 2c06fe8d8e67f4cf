"""Processes in the background end with their session and with the app, unless a person let them go."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hark.processes.background import Background, BackgroundProcess, BackgroundRefused
from hark.processes.cookies import Detached, sweep, this_process
from hark.processes.shell import ShellStates
from hark.processes.start import Launcher
from tests.tools.context import is_living, living
from tests.tools.stubborn_commands import IGNORES_TERM
from tests.waiting import at_most, until

LETS_GO = """
import asyncio, sys
from pathlib import Path
from hark.processes.background import Background
from hark.processes.cookies import this_process
from hark.processes.cookies import Detached
from hark.processes.start import Launcher
from hark.processes.shell import ShellStates

async def main(home):
    background = Background(Launcher(this_process(home), home), ShellStates(), Detached(home / "detached"))
    for name in ("kept", "other"):
        process = background.start("s", home, "echo ready; while read line; do echo got $line; done", name)
        while "ready" not in process.output.peek():
            await process.output.changed()
        print(process.pid, flush=True)
    background.detach("s", "kept")
    print("detached", flush=True)
    if sys.argv[2] == "close":
        await background.close()
    else:
        await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


def made(home: Path) -> Background:
    return Background(Launcher(this_process(home), home), ShellStates(), Detached(home / "detached"))


async def output_of(process: BackgroundProcess, is_there: Callable[[str], bool]) -> str:
    output = process.output
    await until(lambda: is_there(output.peek()), changed=output.changed, shows=output.peek)
    return output.peek()


async def test_the_end_of_a_session_ends_its_processes_alone(tmp_path: Path) -> None:
    background = made(tmp_path)
    one, other = (background.start(session, tmp_path, "sleep 120") for session in ("one", "other"))
    await background.end("one")
    assert not is_living(one.pid)
    assert background.of("one") == ()
    assert is_living(other.pid)
    await background.close()
    assert not is_living(other.pid)


async def test_closing_ends_everything_in_a_second_side_by_side(tmp_path: Path) -> None:
    background = made(tmp_path)
    processes = [background.start("s", tmp_path, IGNORES_TERM) for _ in range(6)]
    for process in processes:
        await output_of(process, lambda text: "ready" in text)
    began = time.perf_counter()
    await background.close()
    assert time.perf_counter() - began < at_most(1)
    assert living(this_process(tmp_path).home) == {}
    with pytest.raises(BackgroundRefused, match="the app is ending"):
        background.start("s", tmp_path, "true")


async def test_closing_does_not_wait_for_a_slow_stop_that_is_under_way(tmp_path: Path) -> None:
    background = made(tmp_path)
    process = background.start("s", tmp_path, IGNORES_TERM)
    await output_of(process, lambda text: "ready" in text)
    stop = asyncio.create_task(process.stop(grace_seconds=30))
    await asyncio.sleep(0)
    began = time.perf_counter()
    await background.close()
    assert time.perf_counter() - began < at_most(1)
    await stop
    # It was killed; a busy machine may take a moment to have it die.
    await until(lambda: not living(this_process(tmp_path).home), seconds=at_most(1))


async def test_a_process_that_ends_by_itself_is_seen_as_ended(tmp_path: Path) -> None:
    background = made(tmp_path)
    process = background.start("s", tmp_path, "echo bye; exit 4")
    await process.ended()
    assert (process.exit_code, process.output.peek(), process.is_running) == (4, "bye\n", False)
    assert background.of("s") == (process,)
    await background.close()


async def test_a_stop_before_the_process_had_a_turn_ends_it(tmp_path: Path) -> None:
    background = made(tmp_path)
    process = background.start("s", tmp_path, "sleep 120")
    await process.stop()
    assert not is_living(process.pid)
    await background.close()


async def test_only_so_many_run_and_few_of_the_ended_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.processes.background.RUNNING_AT_MOST", 2)
    monkeypatch.setattr("hark.processes.background.ENDED_AT_MOST", 2)
    background = made(tmp_path)
    for _ in range(5):
        await background.start("s", tmp_path, "true").ended()
    assert len(background.of("s")) == 3
    for _ in range(2):
        background.start("s", tmp_path, "sleep 120")
    with pytest.raises(BackgroundRefused, match="2 processes run already"):
        background.start("s", tmp_path, "sleep 120")
    await background.close()


@pytest.mark.parametrize("way", ["close", "kill"])
async def test_a_detached_process_outlives_exit_crash_and_sweep(way: str, tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LETS_GO, str(tmp_path), way, stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    kept, other = [int(await owner.stdout.readline()) for _ in range(2)]
    assert await owner.stdout.readline() == b"detached\n"
    if way == "kill":
        owner.send_signal(signal.SIGKILL)
    await owner.wait()
    await sweep(this_process(tmp_path), Detached(tmp_path / "detached").cookies())
    assert is_living(kept)
    assert not is_living(other)
    await sweep(this_process(tmp_path))  # without the file nothing is spared: this is how the test tidies up
    assert not is_living(kept)
    assert living(this_process(tmp_path).home) == {}


async def _reads(file: anyio.Path, text: str) -> bool:
    return await file.read_text() == text


async def test_a_detached_process_goes_on_printing_into_its_file(tmp_path: Path) -> None:
    background = made(tmp_path)
    command = "echo before; until [ -e go ]; do sleep 0.01; done; echo after; touch done; read line; touch end"
    process = background.start("s", tmp_path, command, "p")
    await output_of(process, lambda text: "before" in text)
    told = background.detach("s", "p")
    file = anyio.Path(told.rpartition(" ")[2])
    await background.close()
    (tmp_path / "go").touch()
    await until(lambda: _reads(file, "before\nafter\n"))
    assert is_living(process.pid), "its input must not have come to an end"
    assert background.of("s") == ()
    os.killpg(process.pid, signal.SIGKILL)


async def test_what_does_not_run_cannot_be_detached(tmp_path: Path) -> None:
    with pytest.raises(BackgroundRefused, match="No process named x runs"):
        made(tmp_path).detach("s", "x")
