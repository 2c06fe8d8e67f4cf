"""Lines are added to a file whole, in order, and by several processes."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hark.disk.line_file import append_line


def test_a_new_file_begins_with_the_heading_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lines"
    append_line(path, b"one", b"# heading\n")
    append_line(path, b"two", b"# heading\n")
    assert path.read_bytes() == b"# heading\none\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_is_not_joined_to_a_last_line_without_a_newline(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"written by hand")
    append_line(path, b"next")
    assert path.read_bytes() == b"written by hand\nnext\n"


def test_lines_of_several_processes_are_all_stored(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    code = (
        "import sys; from pathlib import Path; from hark.disk.line_file import append_line\n"
        "for number in range(10): append_line(Path(sys.argv[1]), f'{sys.argv[2]}-{number}'.encode())"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert sorted(path.read_text().split()) == sorted(f"{name}-{number}" for name in "abc" for number in range(10))


def test_a_failed_append_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    append_line(path, b"one")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hark.disk.private_files.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        append_line(path, b"two")
    assert path.read_bytes() == b"one\n"
