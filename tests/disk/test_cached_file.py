"""A cached file is loaded again only when it has changed."""

import os
from pathlib import Path

import pytest

from hark.disk.cached_file import CachedFile


class CountingLoader:
    def __init__(self) -> None:
        self.reads = 0

    def __call__(self, path: Path) -> str:
        self.reads += 1
        return path.read_text("utf-8")


def test_a_file_is_loaded_again_only_after_a_change(tmp_path: Path) -> None:
    path, load = tmp_path / "file", CountingLoader()
    path.write_text("one")
    file = CachedFile(path, load)
    assert [file.read(), file.read()] == ["one", "one"]
    assert load.reads == 1
    path.write_text("other")
    assert file.read() == "other"
    os.utime(path, ns=(1, 1))
    file.read()
    assert load.reads == 3


def test_a_missing_or_invalid_file_is_loaded_again_once_it_is_valid(tmp_path: Path) -> None:
    path, load = tmp_path / "file", CountingLoader()
    file = CachedFile(path, load)
    with pytest.raises(FileNotFoundError):
        file.read()
    path.write_bytes(b"\xff")
    for _ in range(2):
        with pytest.raises(UnicodeDecodeError):
            file.read()
    assert load.reads == 2
    path.write_text("good")
    assert file.read() == "good"


def test_invalidating_loads_an_unchanged_file_again(tmp_path: Path) -> None:
    path, load = tmp_path / "file", CountingLoader()
    path.write_text("one")
    file = CachedFile(path, load)
    file.read()
    file.invalidate()
    assert file.read() == "one"
    assert load.reads == 2
