"""Retention of undo data: old data is removed, and data that may still be needed stays."""

import os
import time
from pathlib import Path

from hark.tools.undo.blobs import BlobStore
from hark.tools.undo.retention import MIN_KEPT_STEPS, clean_up
from hark.tools.undo.steps import lock_store
from tests.tools.undo.random_trees import open_undo, read_tree, step_id

MONTH_SECONDS = 30 * 24 * 3600.0


def clean_up_now(store: Path) -> None:
    (store / "swept").unlink(missing_ok=True)
    with lock_store(store, is_shared=False):
        clean_up(store, BlobStore(store / "blobs"))


def backdate_files(store: Path) -> None:
    then = time.time() - MONTH_SECONDS
    for number, path in enumerate(sorted(store.rglob("*"))):
        os.utime(path, (then + number, then + number))


async def record_steps(store: Path, workspace: Path, count: int) -> None:
    async with open_undo(store) as undo:
        for number in range(count):
            await undo.save_before_step(step_id(number, f"t{number}"), workspace, None)
            (workspace / "f").write_text(f"{number}")
            undo.finish_step(step_id(number, f"t{number}"))


async def test_old_steps_are_removed_but_the_last_ones_are_kept(tmp_path: Path) -> None:
    store, workspace = tmp_path / "home" / "undo", tmp_path / "work"
    workspace.mkdir()
    await record_steps(store, workspace, MIN_KEPT_STEPS + 10)
    backdate_files(store)
    clean_up_now(store)
    steps = list(store.glob("steps/*/*.step"))
    assert MIN_KEPT_STEPS - 1 <= len(steps) <= MIN_KEPT_STEPS
    async with open_undo(store) as undo:
        for number in range(len(steps)):
            assert (await undo.undo("s")).restored == ("f",)
            assert (workspace / "f").read_text() == f"{MIN_KEPT_STEPS + 8 - number}"


async def test_blobs_that_no_step_needs_are_removed(tmp_path: Path) -> None:
    store, workspace = tmp_path / "home" / "undo", tmp_path / "work"
    workspace.mkdir()
    await record_steps(store, workspace, 5)
    before = len(list(store.glob("blobs/*/*")))
    (store / "blobs" / "new-half").write_text("left by a crash")
    async with open_undo(store) as undo:
        for _ in range(5):
            await undo.undo("s")
    clean_up_now(store)
    assert len(list(store.glob("blobs/*/*"))) < before
    assert not list(store.glob("steps/*/*.undone"))
    assert not (store / "blobs" / "new-half").exists()


async def test_undo_still_works_after_another_process_cleaned_up(tmp_path: Path) -> None:
    store, workspace = tmp_path / "home" / "undo", tmp_path / "work"
    workspace.mkdir()
    (workspace / "kept").write_text("kept")
    async with open_undo(store) as undo:
        for number in range(3):
            before = read_tree(workspace)
            await undo.save_before_step(step_id(number), workspace, None)
            (workspace / "kept").unlink()
            undo.finish_step(step_id(number))
            await undo.undo("s", only_step=True)
            assert read_tree(workspace) == before
            if number == 0:
                clean_up_now(store)
            else:
                for path in sorted(store.rglob("*"), reverse=True):  # another process removes the whole store
                    path.unlink() if path.is_file() else path.rmdir()
