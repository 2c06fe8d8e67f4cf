"""Undo after kill -9 at any moment, with a failing disk, and with another process using the store."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hark.protocol.snapshots import UndoRefused
from tests.tools.undo.random_trees import open_undo, read_tree, run_shell, step_id

# Runs commands as steps in a workspace, and undoes them on request. Prints a line for each action.
CHILD = """
import asyncio, itertools, os, resource, subprocess, sys, threading
from pathlib import Path
from hark.protocol.snapshots import StepId, UndoRefused
from hark.tools.undo.undo import Undo

DISK_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "os.link")

def die_at(last):
    counter = itertools.count()
    def count_event(event, _):
        if event in DISK_EVENTS and threading.current_thread().name == "hark-undo" and next(counter) == last:
            os.kill(os.getpid(), 9)
    sys.addaudithook(count_event)

async def main():
    workspace, store, *commands = sys.argv[1:]
    undo = Undo(Path(store))
    for number, command in enumerate(commands):
        if command == "undo":
            print("undoing", flush=True)
            try:
                print(await undo.undo("s"), flush=True)
            except UndoRefused as refused:
                print(refused, flush=True)
        elif command == "small files only":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        elif command.startswith("die at "):
            die_at(int(command.removeprefix("die at ")))
        elif command == "die":
            os.kill(os.getpid(), 9)
        else:
            await undo.save_before_step(StepId("s", "t", number), Path(workspace), None)
            subprocess.run(["sh", "-c", command], cwd=workspace, check=True)
            if "die" != (commands + [""])[number + 1]:
                undo.finish_step(StepId("s", "t", number))
    await undo.close()

asyncio.run(main())
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for number in range(40):
        parent = folder / f"d{number % 4}" / f"e{number % 3}"
        parent.mkdir(parents=True, exist_ok=True)
        (parent / f"f{number}").write_bytes(bytes([number]) * number * 400)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "home" / "undo"


CHANGES = "for f in d*/e*/f*; do echo x >> $f; done; rm -r d1; mv d2 moved; mkdir -p new/deep; cp -r d3 new/deep"


def start_child(workspace: Path, store: Path, *commands: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", CHILD, workspace, store, *commands], stdout=subprocess.PIPE)


async def test_a_turn_can_be_undone_after_a_restart(workspace: Path, store: Path) -> None:
    before = read_tree(workspace)
    start_child(workspace, store, CHANGES, "echo y > y").communicate()
    async with open_undo(store) as undo:
        assert (await undo.undo("s")).not_undone == ()
    assert read_tree(workspace) == before


async def test_a_step_interrupted_by_a_crash_is_undone_with_a_note(workspace: Path, store: Path) -> None:
    before = read_tree(workspace)
    start_child(workspace, store, "echo y > y", CHANGES, "die").communicate()
    async with open_undo(store) as undo:
        undone = await undo.undo("s")
    assert read_tree(workspace) == before
    assert len(undone.not_undone) == 1
    assert "crash" in undone.not_undone[0]


async def test_a_restart_ends_an_interrupted_step_so_later_edits_are_not_undone(workspace: Path, store: Path) -> None:
    start_child(workspace, store, "echo agent > y", "die").communicate()
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(1, "t2"), workspace, ["nothing"])  # runs after the recovery
        (workspace / "mine").write_text("mine")
        await undo.undo("s")
    assert (workspace / "mine").read_text() == "mine"
    assert not (workspace / "y").exists()


def run_until_killed(workspace: Path, store: Path, *commands: str) -> None:
    """Run a child until it kills itself at a disk operation, or exits before reaching that operation."""
    process = start_child(workspace, store, *commands)
    process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), "the child could not run"


async def undo_if_possible(store: Path) -> str:
    async with open_undo(store) as undo:
        try:
            await undo.undo("s")
        except UndoRefused as refused:
            return str(refused)
    return ""


@pytest.mark.parametrize("disk_operation", [*range(12), *range(12, 260, 31)])
async def test_an_undo_killed_at_any_disk_operation_is_finished_at_the_next_start(
    workspace: Path, store: Path, disk_operation: int
) -> None:
    before = read_tree(workspace)
    run_until_killed(workspace, store, CHANGES, f"die at {disk_operation}", "undo")
    assert (await undo_if_possible(store))[:25] in ("", "There is nothing to undo ")
    assert read_tree(workspace) == before


@pytest.mark.parametrize("disk_operation", [*range(8), *range(8, 600, 75)])
async def test_a_step_killed_at_any_disk_operation_is_undone_at_the_next_start(
    workspace: Path, store: Path, disk_operation: int
) -> None:
    before = read_tree(workspace)
    run_until_killed(workspace, store, f"die at {disk_operation}", CHANGES, "echo y > y; rm -r moved")
    assert (await undo_if_possible(store))[:25] in ("", "There is nothing to undo ")
    assert read_tree(workspace) == before


async def test_an_undo_that_fails_halfway_is_rolled_back(workspace: Path, store: Path) -> None:
    (workspace / "zz-big").write_bytes(bytes(300_000))
    before = read_tree(workspace)
    process = start_child(workspace, store, f"{CHANGES}; echo small > zz-big", "small files only", "undo")
    output = process.communicate()[0].decode()
    assert "Nothing was undone" in output
    assert "file too large" in output
    assert (workspace / "zz-big").read_text() == "small\n"
    assert not (workspace / "d1").exists()
    async with open_undo(store) as undo:
        assert (await undo.undo("s")).not_undone == ()
    assert read_tree(workspace) == before


async def test_two_processes_can_share_a_store(tmp_path: Path, workspace: Path, store: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    before = read_tree(workspace)
    process = start_child(other, store, *[f"echo {number} > f; echo same > g{number}" for number in range(10)], "undo")
    async with open_undo(store) as undo:
        for number in range(6):
            await undo.save_before_step(step_id(number, "t", "here"), workspace, None)
            await asyncio.to_thread(run_shell, workspace, f"echo same > g{number}; rm -r d3/e{number}; true")
            undo.finish_step(step_id(number, "t", "here"))
        await undo.undo("here")
    await asyncio.to_thread(process.communicate)
    assert read_tree(workspace) == before
    assert read_tree(other) == {}
