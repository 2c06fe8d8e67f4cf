"""Private files and folders have the modes 0600 and 0700, regardless of the umask."""

import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from hark.disk.private_files import (
    append_log,
    create_private,
    create_private_folder,
    replace_file,
    restrict_access,
)


@pytest.fixture(autouse=True)
def clear_umask() -> Generator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def collect_modes(folder: Path) -> set[str]:
    """Return the types and modes of a folder and its contents."""
    paths = (folder, *folder.rglob("*"))
    return {f"{'folder' if path.is_dir() else 'file'} {stat.S_IMODE(path.stat().st_mode):o}" for path in paths}


PRIVATE_MODES = {"folder 700", "file 600"}


def test_files_are_created_with_private_parent_folders(tmp_path: Path) -> None:
    create_private(tmp_path / "a" / "b" / "one", b"1")
    append_log(tmp_path / "c" / "two", b"2")
    replace_file(tmp_path / "d" / "three", b"3")
    for name in "acd":
        assert collect_modes(tmp_path / name) == PRIVATE_MODES


def test_creating_an_existing_file_raises_and_keeps_its_content(tmp_path: Path) -> None:
    create_private(tmp_path / "one", b"1")
    with pytest.raises(FileExistsError):
        create_private(tmp_path / "one", b"2")
    assert (tmp_path / "one").read_bytes() == b"1"


def test_appending_returns_the_size_and_restricts_access_to_an_older_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"abc")
    assert append_log(tmp_path / "one", b"de") == 5
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600


def test_a_failed_replacement_keeps_the_old_content_and_leaves_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(OSError, match="one"):
        replace_file(tmp_path / "one", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_access_is_restricted_for_an_existing_folder_but_not_for_a_shared_one(tmp_path: Path) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir(0o777)
    shared.mkdir()
    shared.chmod(0o1777)
    for folder in (own, shared):
        create_private_folder(folder)
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_an_executable_stays_executable_for_its_owner(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    (tmp_path / "run").chmod(0o755)
    restrict_access(tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
