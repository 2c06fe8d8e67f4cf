"""A file that is read again only when it has changed."""

import os
from pathlib import Path

import pytest

from hark.disk.cached_file import CachedFile


class Counted:
    def __init__(self) -> None:
        self.reads = 0

    def __call__(self, path: Path) -> str:
        self.reads += 1
        return path.read_text("utf-8")


def test_a_file_is_read_again_only_after_a_change(tmp_path: Path) -> None:
    path, load = tmp_path / "file", Counted()
    path.write_text("one")
    file = CachedFile(path, load)
    assert [file.read(), file.read()] == ["one", "one"]
    assert load.reads == 1
    path.write_text("other")
    assert file.read() == "other"
    os.utime(path, ns=(1, 1))
    file.read()
    assert load.reads == 3


def test_a_file_that_is_gone_or_broken_is_read_again_when_it_is_back(tmp_path: Path) -> None:
    path, load = tmp_path / "file", Counted()
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


def test_forget_reads_again_although_nothing_changed(tmp_path: Path) -> None:
    path, load = tmp_path / "file", Counted()
    path.write_text("one")
    file = CachedFile(path, load)
    file.read()
    file.forget()
    assert file.read() == "one"
    assert load.reads == 2
