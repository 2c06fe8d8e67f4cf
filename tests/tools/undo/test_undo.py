"""Undo of steps and turns, as the user sees it."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.snapshots import UndoRefused
from hark.tools.undo.scan import ScanLimits
from hark.tools.undo.undo import Undo
from hark.tools.undo.undo_store import UndoStore
from tests.tools.undo.random_trees import open_undo, read_tree, run_shell, step_id, wait_for_file_clock
from tests.waiting import at_most

ODD_PATHS = ("a\0b", "\ud800", "a.txt/x", "n" * 999, "", "/", "..")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "src" / "b.py").write_text("print(1)\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "home" / "undo"


def damage_blob(store: Path, content: bytes | None = None, damaged: bytes = b"damaged") -> None:
    """Damage the blob with this content, or all blobs."""
    for blob in store.glob("blobs/*/*"):
        if content is None or blob.read_bytes() == content:
            blob.write_bytes(damaged)


def newest_step(store: Path) -> Path:
    return max(store.glob("steps/*/*.step"), key=lambda path: path.name)


def step_suffixes(step: Path) -> list[str]:
    return [path.suffix for path in step.parent.glob(f"{step.name}*")]


async def test_a_turn_of_file_tools_and_shell_commands_is_undone_exactly(workspace: Path, store: Path) -> None:
    before = read_tree(workspace)
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(1), workspace, ["a.txt", "made/deep/new.txt"])
        (workspace / "a.txt").write_text("edited")
        (workspace / "made" / "deep").mkdir(parents=True)
        (workspace / "made" / "deep" / "new.txt").write_text("new")
        undo.finish_step(step_id(1))
        await undo.save_before_step(step_id(2), workspace, None)
        run_shell(
            workspace, "mv src renamed; rm run.sh; rmdir empty; echo x > link; ln -sf nowhere link; chmod 600 a.txt"
        )
        undo.finish_step(step_id(2), ["shell: git push"])
        undone = await undo.undo("s")
        assert read_tree(workspace) == before
    assert {"a.txt", "src/b.py", "renamed/b.py", "made/", "run.sh", "link", "empty/"} <= set(undone.restored)
    assert undone.not_undone == ("shell: git push",)


async def test_a_second_undo_reverts_the_previous_turn_and_a_third_is_refused(workspace: Path, store: Path) -> None:
    before = read_tree(workspace)
    async with open_undo(store) as undo:
        for turn in ("t1", "t2"):
            await undo.save_before_step(step_id(1, turn), workspace, None)
            run_shell(workspace, f"echo {turn} >> a.txt")
            undo.finish_step(step_id(1, turn))
        await undo.undo("s")
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\nt1\n"
        await undo.undo("s")
        assert read_tree(workspace) == before
        with pytest.raises(UndoRefused, match="nothing to undo"):
            await undo.undo("s")


async def test_undo_can_be_limited_to_the_last_step(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        for number in (1, 2):
            await undo.save_before_step(step_id(number), workspace, ["a.txt"])
            (workspace / "a.txt").write_text(f"step {number}")
            undo.finish_step(step_id(number))
        await undo.undo("s", only_step=True)
        assert (workspace / "a.txt").read_text() == "step 1"


async def test_a_step_without_changes_is_skipped_by_undo(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(1, "t1"), workspace, None)
        (workspace / "a.txt").write_text("edited")
        undo.finish_step(step_id(1, "t1"))
        await undo.save_before_step(step_id(1, "t2"), workspace, None)
        undo.finish_step(step_id(1, "t2"))
        await undo.undo("s")
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_undo_is_refused_and_names_the_file_if_it_was_changed_later(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "echo agent > a.txt; echo agent > src/b.py")
        undo.finish_step(step_id())
        await undo.save_before_step(
            step_id(2, "t2"), workspace, ["other"]
        )  # later changes no longer belong to the step
        (workspace / "a.txt").write_text("mine")
        now = read_tree(workspace)
        with pytest.raises(UndoRefused, match=r"a\.txt was changed since") as refused:
            await undo.undo("s")
        assert "b.py" not in str(refused.value)
        assert read_tree(workspace) == now
        (workspace / "a.txt").write_text("agent\n")
        await undo.undo("s")
        assert (workspace / "src" / "b.py").read_text() == "print(1)\n"


async def test_user_edits_between_steps_are_not_undone(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(1), workspace, None)
        run_shell(workspace, "echo agent > a.txt; mkdir made")
        undo.finish_step(step_id(1))
        await undo.save_before_step(step_id(2), workspace, ["nothing"])
        (workspace / "src" / "b.py").write_text("mine")
        (workspace / "made" / "mine.txt").write_text("mine")
        undo.finish_step(step_id(2))
        undone = await undo.undo("s")
    assert (workspace / "src" / "b.py").read_text() == "mine"
    assert (workspace / "made" / "mine.txt").read_text() == "mine"
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert undone.not_undone == ("made/ was not removed: it contains other files",)


async def test_undo_of_a_step_restores_the_state_before_its_first_call(workspace: Path, store: Path) -> None:
    before = read_tree(workspace)
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, ["a.txt", "new.txt"])
        (workspace / "a.txt").write_text("first")
        (workspace / "new.txt").write_text("first")
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "echo second >> a.txt; rm -r src")
        await undo.save_before_step(step_id(), workspace, ["a.txt"])
        undo.finish_step(step_id())
        await undo.undo("s")
        assert read_tree(workspace) == before


async def test_changes_outside_the_workspace_and_through_links_are_undone(
    tmp_path: Path, workspace: Path, store: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("was")
    (workspace / "there").symlink_to(tmp_path)
    async with open_undo(store) as undo:
        await undo.save_before_step(
            step_id(), workspace, [str(outside), "there/made/x", "link", "a\0b", "\ud800", "a.txt/x", "n" * 999]
        )
        outside.write_text("edited")
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "x").write_text("x")
        (workspace / "link").write_text("written through the link")
        undo.finish_step(step_id())
        await undo.undo("s")
    assert outside.read_text() == "was"
    assert not (tmp_path / "made").exists()
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_invalid_unicode_in_the_notes_of_a_step_is_replaced(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        undo.finish_step(step_id(), ["shell: \ud800"])
        assert (await undo.undo("s")).not_undone == ("shell: ?",)


async def test_a_damaged_backup_copy_is_reported_and_other_files_are_undone(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        (workspace / "a.txt").write_text("x")
        (workspace / "src" / "b.py").write_text("x")
        undo.finish_step(step_id())
        await undo.save_before_step(step_id(1, "t2"), workspace, ["nothing"])  # runs after the recorded step
        damage_blob(store, b"one\r\ntwo\r\n")
        undone = await undo.undo("s")
    assert undone.restored == ("src/b.py",)
    assert undone.not_undone == ("a.txt was changed and can't be restored: the stored copy is missing or damaged",)


async def test_two_sessions_in_one_workspace_undo_only_their_own_changes(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        for session, name in (("one", "a.txt"), ("two", "src/b.py")):
            await undo.save_before_step(step_id(session=session), workspace, [name])
            (workspace / name).write_text(session)
            undo.finish_step(step_id(session=session))
        await undo.undo("one")
        assert (workspace / "src" / "b.py").read_text() == "two"
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_files_too_big_to_store_are_reported_unless_they_were_only_moved(workspace: Path, store: Path) -> None:
    for name in ("changed.bin", "moved.bin"):
        (workspace / name).write_bytes(bytes(2_000_000))
    async with open_undo(store, ScanLimits(file_bytes=1_000_000)) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "echo x >> changed.bin; mkdir sub; mv moved.bin sub/; echo x > a.txt")
        run_shell(workspace, "head -c 3000000 /dev/zero > n")
        undo.finish_step(step_id())
        undone = await undo.undo("s")
    assert undone.not_undone == ("changed.bin (2 MB) was changed and can't be restored: too big to store",)
    assert (workspace / "moved.bin").exists()
    assert not (workspace / "sub").exists()
    assert not (workspace / "n").exists()
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_a_snapshot_over_its_file_limit_reports_the_skipped_folder(workspace: Path, store: Path) -> None:
    (workspace / "many").mkdir()
    for number in range(30):
        (workspace / "many" / str(number)).write_text("x")
    async with open_undo(store, ScanLimits(files=20)) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "rm -r many; echo x > a.txt")
        undo.finish_step(step_id())
        undone = await undo.undo("s")
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert "many was removed and can't be restored: it has too many files" in undone.not_undone


async def test_a_snapshot_that_ran_out_of_time_is_reported(workspace: Path, store: Path) -> None:
    async with open_undo(store, ScanLimits(seconds=0.0)) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "echo x > a.txt")
        undo.finish_step(step_id())
        undone = await undo.undo("s")
    assert undone.restored == ()
    assert "no time" in undone.not_undone[0]


async def test_ignored_folders_are_skipped_but_ignored_files_are_undone(workspace: Path, store: Path) -> None:
    (workspace / ".gitignore").write_text("/dist/\n.env\n*.log\n!keep.log\n")
    (workspace / ".env").write_text("KEY=1")
    for folder in ("dist", "node_modules", "x.log", "keep.log"):
        (workspace / folder).mkdir()
        (workspace / folder / "file").write_text("was")
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "for f in dist node_modules x.log keep.log; do echo new > $f/file; done; echo K > .env")
        undo.finish_step(step_id())
        undone = await undo.undo("s")
    assert (workspace / ".env").read_text() == "KEY=1"
    assert (workspace / "keep.log" / "file").read_text() == "was"
    assert (workspace / "dist" / "file").read_text() == "new\n"
    assert len(undone.not_undone) == 1
    assert all(name in undone.not_undone[0] for name in ("dist", "node_modules", "x.log", "not covered"))


async def test_ignored_files_created_by_a_step_are_removed(workspace: Path, store: Path) -> None:
    (workspace / ".gitignore").write_text("dist/\n")
    before = read_tree(workspace)
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "mkdir -p dist/x node_modules/y src/__pycache__ new/__pycache__")
        run_shell(
            workspace, "for d in dist/x node_modules/y src/__pycache__ new/__pycache__; do echo 1 > $d/made; done"
        )
        run_shell(workspace, "echo src/ >> .gitignore; echo 5 >> src/b.py")
        undo.finish_step(step_id())
        (workspace / "src" / "__pycache__" / "later.pyc").write_text("created by the user's own run")
        assert (await undo.undo("s")).not_undone == ()
        assert read_tree(workspace) == before


async def test_undoing_the_rename_of_a_repository_restores_its_history(workspace: Path, store: Path) -> None:
    git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
    run_shell(workspace, f"mkdir nested; cd nested; {git} init -q; echo 1 > f; {git} add f; {git} commit -qm one")
    before = read_tree(workspace)
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "mkdir deep; mv nested deep/other; rm deep/other/f")
        undo.finish_step(step_id())
        undone = await undo.undo("s")
    assert undone.not_undone == ()
    assert read_tree(workspace) == before


async def test_named_pipes_in_place_of_files_do_not_block_undo(workspace: Path, store: Path) -> None:
    (workspace / ".git").mkdir()
    os.mkfifo(workspace / ".git" / "HEAD")
    os.mkfifo(workspace / ".gitignore")
    before = read_tree(workspace)
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "rm a.txt .gitignore; mkfifo a.txt")
        undo.finish_step(step_id())
        await undo.undo("s")
    assert read_tree(workspace) == before


async def test_git_commits_are_reported_as_not_undone(workspace: Path, store: Path) -> None:
    git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
    run_shell(workspace, f"{git} init -q; {git} add -A; {git} commit -qm one")
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, f"echo x > a.txt; {git} commit -qam two")
        undo.finish_step(step_id())
        undone = await undo.undo("s")
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert len(undone.not_undone) == 1
    assert "git commits" in undone.not_undone[0]


async def test_harks_home_inside_the_workspace_is_never_changed(workspace: Path) -> None:
    home = workspace / ".hark"
    home.mkdir()
    (home / "secret").write_text("1")
    async with open_undo(home / "undo") as undo:
        await undo.save_before_step(step_id(), workspace, None)
        (home / "secret").write_text("2")
        (workspace / "a.txt").write_text("x")
        await undo.save_before_step(step_id(), workspace, [".hark/secret"])
        undo.finish_step(step_id())
        assert (await undo.undo("s")).restored == ("a.txt",)
    assert (home / "secret").read_text() == "2"


async def test_hard_links_are_still_one_file_after_undo(workspace: Path, store: Path) -> None:
    (workspace / "twin").hardlink_to(workspace / "a.txt")
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        run_shell(workspace, "echo x >> a.txt")
        undo.finish_step(step_id())
        await undo.undo("s")
    assert (workspace / "twin").read_bytes() == b"one\r\ntwo\r\n"
    assert (workspace / "twin").samefile(workspace / "a.txt")


async def test_a_change_without_a_new_size_or_timestamp_is_detected(workspace: Path, store: Path) -> None:
    path = workspace / "a.txt"
    async with open_undo(store) as undo:
        for number in range(20):  # same size, within one tick of the clock
            path.write_text(f"{number:03d}")
            await undo.save_before_step(step_id(number), workspace, None)
            path.write_text(f"{number + 500:03d}")
            undo.finish_step(step_id(number))
            await undo.undo("s", only_step=True)
            assert path.read_text() == f"{number:03d}"


async def test_a_cancelled_snapshot_returns_immediately_and_leaves_no_step(workspace: Path, store: Path) -> None:
    for number in range(300):
        (workspace / str(number)).write_bytes(os.urandom(5000))
    async with open_undo(store) as undo:
        snapshot = asyncio.create_task(undo.save_before_step(step_id(), workspace, None))
        await asyncio.sleep(0)
        snapshot.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await snapshot
        assert time.monotonic() - started < at_most(0.5)
        (workspace / "a.txt").write_text("mine")
        undo.finish_step(step_id())
        with pytest.raises(UndoRefused):
            await undo.undo("s")


async def test_a_store_that_cannot_be_written_does_not_break_the_turn_and_is_reported(
    workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    undo = Undo(tmp_path / "home" / "undo")
    await undo.save_before_step(step_id(), workspace, None)
    undo.finish_step(step_id(), ["shell: git push"])
    with pytest.raises(UndoRefused, match=r"not a directory|file exists"):
        await undo.undo("s")
    await undo.close()


async def test_the_store_is_private_to_its_owner(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(), workspace, None)
        (workspace / "a.txt").write_text("x")
        undo.finish_step(step_id())
        await undo.undo("s")
    modes = {kind: mode for kind, mode, _ in read_tree(store.parent).values()}
    assert modes == {"folder": 0o700, "file": 0o600}
    assert len({(kind, mode) for kind, mode, _ in read_tree(store.parent).values()}) == 2


async def test_calls_after_close_do_not_hang(workspace: Path, store: Path) -> None:
    undo = Undo(store)
    await undo.close()
    await undo.close()
    await undo.save_before_step(step_id(), workspace, None)
    undo.finish_step(step_id())
    with pytest.raises(UndoRefused, match="shut down"):
        await undo.undo("s")


async def test_undo_since_a_turn_reverts_that_turn_and_all_later_turns(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        for number in (1, 2, 3):
            name = step_id(1, f"s.t{number}")
            await undo.save_before_step(name, workspace, ["a.txt"])
            (workspace / "a.txt").write_text(f"turn {number}")
            undo.finish_step(name)
        await undo.undo("s", since="s.t2")
        assert (workspace / "a.txt").read_text() == "turn 1"
        assert (await undo.undo("s", since="s.t2")).restored == ()
        await undo.undo("s")
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_undo_is_refused_once_when_the_newest_step_is_damaged(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        for number, text in ((1, "first"), (2, "second")):
            await undo.save_before_step(step_id(number, f"t{number}"), workspace, ["a.txt"])
            (workspace / "a.txt").write_text(text)
            undo.finish_step(step_id(number, f"t{number}"))
        await undo.save_before_step(step_id(3, "t3"), workspace, ["other.txt"])  # waits for the end of step 2
        newest = newest_step(store)
        newest.write_bytes(b"")
        with pytest.raises(UndoRefused, match="damaged"):
            await undo.undo("s")
        assert (workspace / "a.txt").read_text() == "second"
        assert step_suffixes(newest) == [".damaged"]


async def test_an_abandoned_step_whose_earlier_state_is_damaged_is_reported(workspace: Path, store: Path) -> None:
    crashed = Undo(store)
    await crashed.save_before_step(step_id(1), workspace, None)
    (workspace / "a.txt").write_text("changed")
    await crashed.close()
    damage_blob(store, damaged=b"")
    async with open_undo(store) as undo:
        undone = await undo.undo("s")
    assert not undone.restored
    assert any("damaged" in line for line in undone.not_undone)
    assert (workspace / "a.txt").read_text() == "changed"


async def test_a_blob_that_a_power_loss_emptied_is_stored_again(workspace: Path, store: Path) -> None:
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(1), workspace, ["a.txt"])
        undo.finish_step(step_id(1))
        await undo.save_before_step(step_id(2), workspace, ["src/b.py"])  # waits for the end of step 1
        damage_blob(store, b"one\r\ntwo\r\n", b"")
        os.utime(workspace / "a.txt")
        await undo.save_before_step(step_id(3), workspace, ["a.txt"])
        (workspace / "a.txt").write_text("edited")
        undo.finish_step(step_id(3))
        await undo.undo("s")
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_a_file_that_changes_after_the_end_of_a_step_is_not_overwritten(
    workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, end_step = threading.Event(), UndoStore.end_step

    def end_step_late(*arguments: Any) -> None:
        gate.wait()
        end_step(*arguments)

    monkeypatch.setattr(UndoStore, "end_step", end_step_late)
    async with open_undo(store) as undo:
        await undo.save_before_step(step_id(1), workspace, None)
        (workspace / "a.txt").write_text("of the step")
        undo.finish_step(step_id(1))
        wait_for_file_clock(store)
        (workspace / "a.txt").write_text("of the user")
        gate.set()
        with pytest.raises(UndoRefused, match=r"a\.txt"):
            await undo.undo("s")
    assert (workspace / "a.txt").read_text() == "of the user"
