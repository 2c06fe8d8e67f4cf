"""Long output is whole in a file."""

import re
import stat
from pathlib import Path

import pytest

from hark.processes.cookies import this_process
from hark.processes.output import WholeOutput, new_output
from hark.processes.start import Launcher
from hark.tools.shell import Shell
from tests.tools.context import FakeContext, call_tool


async def test_the_result_of_a_long_command_names_the_file_that_has_all_of_it(tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    shell = Shell(Launcher(this_process(tmp_path), tmp_path / "home"))
    output = await call_tool(shell, {"command": "seq 20000"}, context)
    found = re.search(r"\[\.\.\. [\d,]+ characters cut here; the whole output is in (\S+) \.\.\.\]", output.text)
    assert found
    (path,) = (tmp_path / "home" / "outputs").iterdir()
    assert found[1] == str(path)
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 20001))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert context.shown.endswith(f"[the whole output is in {path}]")


async def test_short_output_leaves_no_file(tmp_path: Path) -> None:
    shell = Shell(Launcher(this_process(tmp_path), tmp_path / "home"))
    await call_tool(shell, {"command": "seq 100"}, FakeContext(tmp_path))
    assert not (tmp_path / "home").exists()


async def test_a_call_that_ran_into_its_limit_names_the_file_too(tmp_path: Path) -> None:
    shell = Shell(Launcher(this_process(tmp_path), tmp_path / "home"))
    output = await call_tool(shell, {"command": "seq 20000; sleep 60", "timeout_seconds": 3}, FakeContext(tmp_path))
    assert "the whole output is in " in output.text


def test_a_file_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.processes.output.LONGEST_BYTES", 10)
    whole = WholeOutput(tmp_path / "file", short_bytes=0)
    for piece in (b"12345", b"67890", b"1"):
        whole.add(piece)
    whole.close()
    assert (tmp_path / "file").read_bytes() == b"1234567890"
    assert whole.note == f"its first 10 bytes are in {tmp_path}/file: no more than 10 bytes are kept"


def test_a_file_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    whole = WholeOutput(tmp_path / "file", short_bytes=0)
    whole.add(b"text")
    whole.add(b"more")
    whole.close()
    assert whole.note == "the output could not be kept in a file: File exists"


def test_the_oldest_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.processes.output.KEPT_FILES", 3)
    for _ in range(6):
        whole = new_output(tmp_path, "shell", short_bytes=0)
        whole.add(b"text")
        whole.close()
    assert len(list(tmp_path.iterdir())) == 4
