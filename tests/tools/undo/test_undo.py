"""Undo of steps and turns, as its person sees it."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from hark.protocol.snapshots import UndoRefused
from hark.tools.undo.scan import ScanLimits
from hark.tools.undo.undo import Undo
from tests.tools.undo.trees import sh, step, tree_of, undoing
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


def damage(store: Path, content: bytes) -> None:
    for blob in store.glob("blobs/*/*"):
        if blob.read_bytes() == content:
            blob.write_bytes(b"damaged")


async def test_a_turn_of_tools_and_shell_is_undone_byte_by_byte(workspace: Path, store: Path) -> None:
    was = tree_of(workspace)
    async with undoing(store) as undo:
        await undo.before(step(1), workspace, ["a.txt", "made/deep/new.txt"])
        (workspace / "a.txt").write_text("edited")
        (workspace / "made" / "deep").mkdir(parents=True)
        (workspace / "made" / "deep" / "new.txt").write_text("new")
        undo.after(step(1))
        await undo.before(step(2), workspace, None)
        sh(workspace, "mv src renamed; rm run.sh; rmdir empty; echo x > link; ln -sf nowhere link; chmod 600 a.txt")
        undo.after(step(2), ["shell: git push"])
        done = await undo.undo("s")
        assert tree_of(workspace) == was
    assert {"a.txt", "src/b.py", "renamed/b.py", "made/", "run.sh", "link", "empty/"} <= set(done.restored)
    assert done.not_undone == ("shell: git push",)


async def test_a_second_undo_goes_to_the_turn_before_and_then_there_is_none(workspace: Path, store: Path) -> None:
    was = tree_of(workspace)
    async with undoing(store) as undo:
        for turn in ("t1", "t2"):
            await undo.before(step(1, turn), workspace, None)
            sh(workspace, f"echo {turn} >> a.txt")
            undo.after(step(1, turn))
        await undo.undo("s")
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\nt1\n"
        await undo.undo("s")
        assert tree_of(workspace) == was
        with pytest.raises(UndoRefused, match="nothing to undo"):
            await undo.undo("s")


async def test_only_the_last_step_is_undone_when_asked(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        for number in (1, 2):
            await undo.before(step(number), workspace, ["a.txt"])
            (workspace / "a.txt").write_text(f"step {number}")
            undo.after(step(number))
        await undo.undo("s", only_step=True)
        assert (workspace / "a.txt").read_text() == "step 1"


async def test_a_step_that_changed_nothing_is_not_in_the_way(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        await undo.before(step(1, "t1"), workspace, None)
        (workspace / "a.txt").write_text("edited")
        undo.after(step(1, "t1"))
        await undo.before(step(1, "t2"), workspace, None)
        undo.after(step(1, "t2"))
        await undo.undo("s")
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_a_conflict_refuses_all_of_it_and_names_the_file(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "echo agent > a.txt; echo agent > src/b.py")
        undo.after(step())
        await undo.before(step(2, "t2"), workspace, ["other"])  # what comes now is no longer the step's
        (workspace / "a.txt").write_text("mine")
        now = tree_of(workspace)
        with pytest.raises(UndoRefused, match=r"a\.txt was changed since") as refused:
            await undo.undo("s")
        assert "b.py" not in str(refused.value)
        assert tree_of(workspace) == now
        (workspace / "a.txt").write_text("agent\n")
        await undo.undo("s")
        assert (workspace / "src" / "b.py").read_text() == "print(1)\n"


async def test_what_a_person_edits_between_steps_stays(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        await undo.before(step(1), workspace, None)
        sh(workspace, "echo agent > a.txt; mkdir made")
        undo.after(step(1))
        await undo.before(step(2), workspace, ["nothing"])
        (workspace / "src" / "b.py").write_text("mine")
        (workspace / "made" / "mine.txt").write_text("mine")
        undo.after(step(2))
        done = await undo.undo("s")
    assert (workspace / "src" / "b.py").read_text() == "mine"
    assert (workspace / "made" / "mine.txt").read_text() == "mine"
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert done.not_undone == ("made/ stays: it holds other files by now",)


async def test_a_step_keeps_what_was_before_its_first_call(workspace: Path, store: Path) -> None:
    was = tree_of(workspace)
    async with undoing(store) as undo:
        await undo.before(step(), workspace, ["a.txt", "new.txt"])
        (workspace / "a.txt").write_text("first")
        (workspace / "new.txt").write_text("first")
        await undo.before(step(), workspace, None)
        sh(workspace, "echo second >> a.txt; rm -r src")
        await undo.before(step(), workspace, ["a.txt"])
        undo.after(step())
        await undo.undo("s")
        assert tree_of(workspace) == was


async def test_paths_outside_of_the_workspace_and_behind_links_are_undone(
    tmp_path: Path, workspace: Path, store: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("was")
    (workspace / "there").symlink_to(tmp_path)
    async with undoing(store) as undo:
        await undo.before(
            step(), workspace, [str(outside), "there/made/x", "link", "a\0b", "\ud800", "a.txt/x", "n" * 999]
        )
        outside.write_text("edited")
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "x").write_text("x")
        (workspace / "link").write_text("written through the link")
        undo.after(step())
        await undo.undo("s")
    assert outside.read_text() == "was"
    assert not (tmp_path / "made").exists()
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_notes_that_are_no_text_break_nothing(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        undo.after(step(), ["shell: \ud800"])
        assert (await undo.undo("s")).not_undone == ("shell: ?",)


async def test_a_damaged_copy_is_told_and_the_rest_is_undone(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        (workspace / "a.txt").write_text("x")
        (workspace / "src" / "b.py").write_text("x")
        undo.after(step())
        await undo.before(step(1, "t2"), workspace, ["nothing"])  # comes behind it
        damage(store, b"one\r\ntwo\r\n")
        done = await undo.undo("s")
    assert done.restored == ("src/b.py",)
    assert done.not_undone == ("a.txt was changed and can't be undone: the kept copy is missing or damaged",)


async def test_two_sessions_in_one_workspace_undo_their_own(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        for session, name in (("one", "a.txt"), ("two", "src/b.py")):
            await undo.before(step(session=session), workspace, [name])
            (workspace / name).write_text(session)
            undo.after(step(session=session))
        await undo.undo("one")
        assert (workspace / "src" / "b.py").read_text() == "two"
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_what_is_too_big_is_told_and_moved_back_if_it_only_moved(workspace: Path, store: Path) -> None:
    for name in ("changed.bin", "moved.bin"):
        (workspace / name).write_bytes(bytes(2_000_000))
    async with undoing(store, ScanLimits(file_bytes=1_000_000)) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "echo x >> changed.bin; mkdir sub; mv moved.bin sub/; echo x > a.txt")
        sh(workspace, "head -c 3000000 /dev/zero > n")
        undo.after(step())
        done = await undo.undo("s")
    assert done.not_undone == ("changed.bin (2 MB) was changed and can't be undone: too big to keep",)
    assert (workspace / "moved.bin").exists()
    assert not (workspace / "sub").exists()
    assert not (workspace / "n").exists()
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


async def test_beyond_its_budget_a_snapshot_tells_what_it_left_out(workspace: Path, store: Path) -> None:
    (workspace / "many").mkdir()
    for number in range(30):
        (workspace / "many" / str(number)).write_text("x")
    async with undoing(store, ScanLimits(files=20)) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "rm -r many; echo x > a.txt")
        undo.after(step())
        done = await undo.undo("s")
        assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert "many was removed and can't be undone: too many files to keep" in done.not_undone


async def test_a_snapshot_that_had_no_time_at_all_is_told(workspace: Path, store: Path) -> None:
    async with undoing(store, ScanLimits(seconds=0.0)) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "echo x > a.txt")
        undo.after(step())
        done = await undo.undo("s")
    assert done.restored == ()
    assert "no time" in done.not_undone[0]


async def test_ignored_folders_are_left_alone_but_ignored_files_are_undone(workspace: Path, store: Path) -> None:
    (workspace / ".gitignore").write_text("/dist/\n.env\n*.log\n!keep.log\n")
    (workspace / ".env").write_text("KEY=1")
    for folder in ("dist", "node_modules", "x.log", "keep.log"):
        (workspace / folder).mkdir()
        (workspace / folder / "file").write_text("was")
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "for f in dist node_modules x.log keep.log; do echo new > $f/file; done; echo K > .env")
        undo.after(step())
        done = await undo.undo("s")
    assert (workspace / ".env").read_text() == "KEY=1"
    assert (workspace / "keep.log" / "file").read_text() == "was"
    assert (workspace / "dist" / "file").read_text() == "new\n"
    assert len(done.not_undone) == 1
    assert all(name in done.not_undone[0] for name in ("dist", "node_modules", "x.log", "not covered"))


async def test_what_a_step_made_is_removed_though_it_is_ignored(workspace: Path, store: Path) -> None:
    (workspace / ".gitignore").write_text("dist/\n")
    was = tree_of(workspace)
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "mkdir -p dist/x node_modules/y src/__pycache__ new/__pycache__")
        sh(workspace, "for d in dist/x node_modules/y src/__pycache__ new/__pycache__; do echo 1 > $d/made; done")
        sh(workspace, "echo src/ >> .gitignore; echo 5 >> src/b.py")
        undo.after(step())
        (workspace / "src" / "__pycache__" / "later.pyc").write_text("by the person's own run")
        assert (await undo.undo("s")).not_undone == ()
        assert tree_of(workspace) == was


async def test_a_repository_that_was_renamed_gets_its_history_back(workspace: Path, store: Path) -> None:
    git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
    sh(workspace, f"mkdir nested; cd nested; {git} init -q; echo 1 > f; {git} add f; {git} commit -qm one")
    was = tree_of(workspace)
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "mkdir deep; mv nested deep/other; rm deep/other/f")
        undo.after(step())
        done = await undo.undo("s")
    assert done.not_undone == ()
    assert tree_of(workspace) == was


async def test_pipes_where_files_are_expected_hang_nothing(workspace: Path, store: Path) -> None:
    (workspace / ".git").mkdir()
    os.mkfifo(workspace / ".git" / "HEAD")
    os.mkfifo(workspace / ".gitignore")
    was = tree_of(workspace)
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "rm a.txt .gitignore; mkfifo a.txt")
        undo.after(step())
        await undo.undo("s")
    assert tree_of(workspace) == was


async def test_commits_stay_and_that_is_told(workspace: Path, store: Path) -> None:
    git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
    sh(workspace, f"{git} init -q; {git} add -A; {git} commit -qm one")
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, f"echo x > a.txt; {git} commit -qam two")
        undo.after(step())
        done = await undo.undo("s")
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert len(done.not_undone) == 1
    assert "git commits" in done.not_undone[0]


async def test_harks_own_folder_in_the_workspace_is_never_touched(workspace: Path) -> None:
    home = workspace / ".hark"
    home.mkdir()
    (home / "secret").write_text("1")
    async with undoing(home / "undo") as undo:
        await undo.before(step(), workspace, None)
        (home / "secret").write_text("2")
        (workspace / "a.txt").write_text("x")
        await undo.before(step(), workspace, [".hark/secret"])
        undo.after(step())
        assert (await undo.undo("s")).restored == ("a.txt",)
    assert (home / "secret").read_text() == "2"


async def test_hard_links_become_one_file_again(workspace: Path, store: Path) -> None:
    (workspace / "twin").hardlink_to(workspace / "a.txt")
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        sh(workspace, "echo x >> a.txt")
        undo.after(step())
        await undo.undo("s")
    assert (workspace / "twin").read_bytes() == b"one\r\ntwo\r\n"
    assert (workspace / "twin").samefile(workspace / "a.txt")


async def test_a_change_that_shows_in_no_time_stamp_is_seen(workspace: Path, store: Path) -> None:
    path = workspace / "a.txt"
    async with undoing(store) as undo:
        for number in range(20):  # same size, within one tick of the clock
            path.write_text(f"{number:03d}")
            await undo.before(step(number), workspace, None)
            path.write_text(f"{number + 500:03d}")
            undo.after(step(number))
            await undo.undo("s", only_step=True)
            assert path.read_text() == f"{number:03d}"


async def test_a_cancelled_snapshot_returns_at_once_and_leaves_no_step(workspace: Path, store: Path) -> None:
    for number in range(300):
        (workspace / str(number)).write_bytes(os.urandom(5000))
    async with undoing(store) as undo:
        keeping = asyncio.create_task(undo.before(step(), workspace, None))
        await asyncio.sleep(0)
        keeping.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await keeping
        assert time.monotonic() - began < at_most(0.5)
        (workspace / "a.txt").write_text("mine")
        undo.after(step())
        with pytest.raises(UndoRefused):
            await undo.undo("s")


async def test_a_full_disk_breaks_no_turn_and_is_told(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    undo = Undo(tmp_path / "home" / "undo")
    await undo.before(step(), workspace, None)
    undo.after(step(), ["shell: git push"])
    with pytest.raises(UndoRefused, match=r"not a directory|file exists"):
        await undo.undo("s")
    await undo.close()


async def test_the_store_is_for_its_owner_alone(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        await undo.before(step(), workspace, None)
        (workspace / "a.txt").write_text("x")
        undo.after(step())
        await undo.undo("s")
    modes = {kind: mode for kind, mode, _ in tree_of(store.parent).values()}
    assert modes == {"folder": 0o700, "file": 0o600}
    assert len({(kind, mode) for kind, mode, _ in tree_of(store.parent).values()}) == 2


async def test_after_its_close_nothing_hangs(workspace: Path, store: Path) -> None:
    undo = Undo(store)
    await undo.close()
    await undo.close()
    await undo.before(step(), workspace, None)
    undo.after(step())
    with pytest.raises(UndoRefused, match="closed"):
        await undo.undo("s")


async def test_all_that_came_since_a_turn_is_undone_at_once(workspace: Path, store: Path) -> None:
    async with undoing(store) as undo:
        for number in (1, 2, 3):
            name = step(1, f"s.t{number}")
            await undo.before(name, workspace, ["a.txt"])
            (workspace / "a.txt").write_text(f"turn {number}")
            undo.after(name)
        await undo.undo("s", since="s.t2")
        assert (workspace / "a.txt").read_text() == "turn 1"
        assert (await undo.undo("s", since="s.t2")).restored == ()
        await undo.undo("s")
    assert (workspace / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
