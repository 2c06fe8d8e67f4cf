"""Long output is saved in full to a file."""

import re
import stat
from pathlib import Path

import pytest

from hark.processes.cookies import current_owner
from hark.processes.launcher import Launcher
from hark.processes.output import OutputFile, new_output_file
from hark.tools.shell import ShellTool
from tests.tools.fake_context import FakeContext, call_tool


async def test_the_result_of_a_long_command_names_the_file_with_the_full_output(tmp_path: Path) -> None:
    context = FakeContext(tmp_path)
    shell = ShellTool(Launcher(current_owner(tmp_path), tmp_path / "home"))
    output = await call_tool(shell, {"command": "seq 20000"}, context)
    found = re.search(r"\[\.\.\. [\d,]+ characters omitted; the full output is in (\S+) \.\.\.\]", output.text)
    assert found
    (path,) = (tmp_path / "home" / "outputs").iterdir()
    assert found[1] == str(path)
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 20001))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert context.shown.endswith(f"[the full output is in {path}]")


async def test_short_output_creates_no_file(tmp_path: Path) -> None:
    shell = ShellTool(Launcher(current_owner(tmp_path), tmp_path / "home"))
    await call_tool(shell, {"command": "seq 100"}, FakeContext(tmp_path))
    assert not (tmp_path / "home").exists()


async def test_the_result_of_a_timed_out_command_names_the_output_file(tmp_path: Path) -> None:
    shell = ShellTool(Launcher(current_owner(tmp_path), tmp_path / "home"))
    output = await call_tool(shell, {"command": "seq 20000; sleep 60", "timeout_seconds": 3}, FakeContext(tmp_path))
    assert "the full output is in " in output.text


def test_an_output_file_stops_growing_at_its_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.processes.output.MAX_FILE_BYTES", 10)
    file = OutputFile(tmp_path / "file", small_bytes=0)
    for chunk in (b"12345", b"67890", b"1"):
        file.add(chunk)
    file.close()
    assert (tmp_path / "file").read_bytes() == b"1234567890"
    assert file.note == f"the first 10 bytes are in {tmp_path}/file: at most 10 bytes are saved"


def test_an_unwritable_output_file_is_reported_without_raising(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    file = OutputFile(tmp_path / "file", small_bytes=0)
    file.add(b"text")
    file.add(b"more")
    file.close()
    assert file.note == "the output could not be saved to a file: File exists"


def test_the_oldest_output_files_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.processes.output.MAX_FILES", 3)
    for _ in range(6):
        file = new_output_file(tmp_path, "shell", small_bytes=0)
        file.add(b"text")
        file.close()
    assert len(list(tmp_path.iterdir())) == 4
