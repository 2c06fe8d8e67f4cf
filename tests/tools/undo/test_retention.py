"""What is kept for undo doesn't grow for ever, and what may still be needed stays."""

import os
import time
from pathlib import Path

from hark.tools.undo.blobs import Blobs
from hark.tools.undo.retention import KEPT_STEPS, sweep
from hark.tools.undo.steps import locked
from tests.tools.undo.trees import step, tree_of, undoing

MONTH_SECONDS = 30 * 24 * 3600.0


def sweep_now(store: Path) -> None:
    (store / "swept").unlink(missing_ok=True)
    with locked(store, is_shared=False):
        sweep(store, Blobs(store / "blobs"))


def make_old(store: Path) -> None:
    then = time.time() - MONTH_SECONDS
    for number, path in enumerate(sorted(store.rglob("*"))):
        os.utime(path, (then + number, then + number))


async def keep_steps(store: Path, workspace: Path, count: int) -> None:
    async with undoing(store) as undo:
        for number in range(count):
            await undo.before(step(number, f"t{number}"), workspace, None)
            (workspace / "f").write_text(f"{number}")
            undo.after(step(number, f"t{number}"))


async def test_old_steps_go_but_never_the_last_ones(tmp_path: Path) -> None:
    store, workspace = tmp_path / "home" / "undo", tmp_path / "work"
    workspace.mkdir()
    await keep_steps(store, workspace, KEPT_STEPS + 10)
    make_old(store)
    sweep_now(store)
    steps = list(store.glob("steps/*/*.step"))
    assert KEPT_STEPS - 1 <= len(steps) <= KEPT_STEPS
    async with undoing(store) as undo:
        for number in range(len(steps)):
            assert (await undo.undo("s")).restored == ("f",)
            assert (workspace / "f").read_text() == f"{KEPT_STEPS + 8 - number}"


async def test_contents_that_no_step_needs_are_removed(tmp_path: Path) -> None:
    store, workspace = tmp_path / "home" / "undo", tmp_path / "work"
    workspace.mkdir()
    await keep_steps(store, workspace, 5)
    before = len(list(store.glob("blobs/*/*")))
    (store / "blobs" / "new-half").write_text("left by a crash")
    async with undoing(store) as undo:
        for _ in range(5):
            await undo.undo("s")
    sweep_now(store)
    assert len(list(store.glob("blobs/*/*"))) < before
    assert not list(store.glob("steps/*/*.undone"))
    assert not (store / "blobs" / "new-half").exists()


async def test_a_running_process_goes_on_after_a_sweep_by_another(tmp_path: Path) -> None:
    store, workspace = tmp_path / "home" / "undo", tmp_path / "work"
    workspace.mkdir()
    (workspace / "kept").write_text("kept")
    async with undoing(store) as undo:
        for number in range(3):
            was = tree_of(workspace)
            await undo.before(step(number), workspace, None)
            (workspace / "kept").unlink()
            undo.after(step(number))
            await undo.undo("s", only_step=True)
            assert tree_of(workspace) == was
            if number == 0:
                sweep_now(store)
            else:
                for path in sorted(store.rglob("*"), reverse=True):  # someone removes the whole store
                    path.unlink() if path.is_file() else path.rmdir()
