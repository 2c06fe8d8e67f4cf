"""Undo after kill -9 at any moment, with a disk that fails, and beside another process."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hark.protocol.snapshots import UndoRefused
from tests.tools.undo.trees import sh, step, tree_of, undoing

# Steps a workspace through commands, and undoes on request; tells each thing it did on a line.
CHILD = """
import asyncio, itertools, os, resource, subprocess, sys, threading
from pathlib import Path
from hark.protocol.snapshots import StepName, UndoRefused
from hark.tools.undo.undo import Undo

TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "os.link")

def die_at(last):
    counter = itertools.count()
    def touch(event, _):
        if event in TOUCHES and threading.current_thread().name == "hark-undo" and next(counter) == last:
            os.kill(os.getpid(), 9)
    sys.addaudithook(touch)

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
            await undo.before(StepName("s", "t", number), Path(workspace), None)
            subprocess.run(["sh", "-c", command], cwd=workspace, check=True)
            if "die" != (commands + [""])[number + 1]:
                undo.after(StepName("s", "t", number))
    await undo.close()

asyncio.run(main())
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for number in range(40):
        place = folder / f"d{number % 4}" / f"e{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}").write_bytes(bytes([number]) * number * 400)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "home" / "undo"


CHANGES = "for f in d*/e*/f*; do echo x >> $f; done; rm -r d1; mv d2 moved; mkdir -p new/deep; cp -r d3 new/deep"


def child(workspace: Path, store: Path, *commands: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", CHILD, workspace, store, *commands], stdout=subprocess.PIPE)


async def test_a_turn_is_undone_after_a_restart(workspace: Path, store: Path) -> None:
    was = tree_of(workspace)
    child(workspace, store, CHANGES, "echo y > y").communicate()
    async with undoing(store) as undo:
        assert (await undo.undo("s")).not_undone == ()
    assert tree_of(workspace) == was


async def test_a_step_that_a_crash_cut_is_undone_and_that_is_told(workspace: Path, store: Path) -> None:
    was = tree_of(workspace)
    child(workspace, store, "echo y > y", CHANGES, "die").communicate()
    async with undoing(store) as undo:
        done = await undo.undo("s")
    assert tree_of(workspace) == was
    assert len(done.not_undone) == 1
    assert "crash" in done.not_undone[0]


async def test_the_restart_ends_the_cut_step_so_that_later_edits_are_not_its_own(workspace: Path, store: Path) -> None:
    child(workspace, store, "echo agent > y", "die").communicate()
    async with undoing(store) as undo:
        await undo.before(step(1, "t2"), workspace, ["nothing"])  # comes behind the recovery
        (workspace / "mine").write_text("mine")
        await undo.undo("s")
    assert (workspace / "mine").read_text() == "mine"
    assert not (workspace / "y").exists()


async def undo_if_any(store: Path) -> str:
    async with undoing(store) as undo:
        try:
            await undo.undo("s")
        except UndoRefused as refused:
            return str(refused)
    return ""


@pytest.mark.parametrize("touch", [*range(12), *range(12, 260, 31)])
async def test_an_undo_killed_at_any_touch_of_the_disk_is_finished_at_the_next_start(
    workspace: Path, store: Path, touch: int
) -> None:
    was = tree_of(workspace)
    child(workspace, store, CHANGES, f"die at {touch}", "undo").communicate()
    assert (await undo_if_any(store))[:25] in ("", "There is nothing to undo ")
    assert tree_of(workspace) == was


@pytest.mark.parametrize("touch", [*range(8), *range(8, 600, 75)])
async def test_a_step_killed_at_any_touch_of_the_disk_is_undone_at_the_next_start(
    workspace: Path, store: Path, touch: int
) -> None:
    was = tree_of(workspace)
    child(workspace, store, f"die at {touch}", CHANGES, "echo y > y; rm -r moved").communicate()
    assert (await undo_if_any(store))[:25] in ("", "There is nothing to undo ")
    assert tree_of(workspace) == was


async def test_an_undo_that_fails_in_the_middle_is_rolled_back(workspace: Path, store: Path) -> None:
    (workspace / "zz-big").write_bytes(bytes(300_000))
    was = tree_of(workspace)
    process = child(workspace, store, f"{CHANGES}; echo small > zz-big", "small files only", "undo")
    told = process.communicate()[0].decode()
    assert "Nothing was undone" in told
    assert "file too large" in told
    assert (workspace / "zz-big").read_text() == "small\n"
    assert not (workspace / "d1").exists()
    async with undoing(store) as undo:
        assert (await undo.undo("s")).not_undone == ()
    assert tree_of(workspace) == was


async def test_two_processes_share_a_store(tmp_path: Path, workspace: Path, store: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    was = tree_of(workspace)
    process = child(other, store, *[f"echo {number} > f; echo same > g{number}" for number in range(10)], "undo")
    async with undoing(store) as undo:
        for number in range(6):
            await undo.before(step(number, "t", "here"), workspace, None)
            await asyncio.to_thread(sh, workspace, f"echo same > g{number}; rm -r d3/e{number}; true")
            undo.after(step(number, "t", "here"))
        await undo.undo("here")
    await asyncio.to_thread(process.communicate)
    assert tree_of(workspace) == was
    assert tree_of(other) == {}
