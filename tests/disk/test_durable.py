"""Files and folders are synced one by one, or together with their file system if there are many."""

from pathlib import Path

import pytest

from hark.disk.durable import MAX_SINGLE_SYNCS, sync_files, sync_folders


@pytest.mark.parametrize("count", [1, MAX_SINGLE_SYNCS + 1])
def test_existing_files_and_folders_are_synced(tmp_path: Path, count: int) -> None:
    folders = [tmp_path / str(number) for number in range(count)]
    for folder in folders:
        folder.mkdir()
        (folder / "file").write_text("text")
    sync_files([folder / "file" for folder in folders])
    sync_folders(folders)


def test_a_missing_file_causes_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_files([tmp_path / "missing"])


def test_nothing_is_synced_without_paths() -> None:
    sync_files([])
    sync_folders([])
