"""The tool that writes whole files."""

import os
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import Foreseen, ToolOutput
from hark.tools.files.last_reads import LastReads
from hark.tools.files.write import Write, WriteArguments
from tests.tools.context import FakeContext, call_tool

HOME_FILE = str(Path("~/a").expanduser())
needs_no_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")


async def write(root: Path, path: str, content: str) -> ToolOutput:
    return await call_tool(Write(LastReads()), {"path": path, "content": content}, FakeContext(root))


def tree(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


async def refused(root: Path, path: str, content: str = "x") -> str:
    before = tree(root)
    output = await write(root, path, content)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert tree(root) == before
    return output.text


async def test_a_new_file_is_made_with_its_folders(tmp_path: Path) -> None:
    output = await write(tmp_path, "a/b/c.txt", "one\ntwo")
    assert output == ToolOutput("Created a/b/c.txt: 2 lines, 7 bytes.")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"one\ntwo"
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.txt"]


async def test_an_old_file_is_replaced_and_the_change_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    output = await write(tmp_path, "a", "one\n2\n")
    assert output.text == "Overwrote a: 6 bytes, before 8.\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
    assert (await write(tmp_path, "a", "one\n2\n")).text == "a has exactly this content already; nothing was changed."


async def test_the_mode_is_kept_and_a_new_file_has_the_usual_one(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await write(tmp_path, "run.sh", "new")
    assert script.stat().st_mode & 0o7777 == 0o750
    (tmp_path / "usual").touch()
    await write(tmp_path, "made", "x")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "usual").stat().st_mode


async def test_a_link_stays_one_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    (tmp_path / "dangling").symlink_to("real/new")
    await write(tmp_path, "link", "new")
    await write(tmp_path, "dangling", "made")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"
    assert (tmp_path / "real" / "new").read_text() == "made"


async def test_what_gets_lost_is_told(tmp_path: Path) -> None:
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbfa\n")
    (tmp_path / "binary").write_bytes(b"\0\1")
    assert "[its lines ended with CRLF before, and with LF now]" in (await write(tmp_path, "crlf", "a\n")).text
    assert "[it was utf-8 with a byte order mark before" in (await write(tmp_path, "mark", "b\n")).text
    assert (await write(tmp_path, "binary", "b\n")).text.endswith("It was binary before.")


async def test_what_can_not_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    assert "folder is a folder" in await refused(tmp_path, "folder")
    assert "new/ names a folder" in await refused(tmp_path, "new/")
    assert "pipe is a named pipe" in await refused(tmp_path, "pipe")
    assert "is a device" in await refused(tmp_path, "/dev/null")
    assert "can't be written" in await refused(tmp_path, "file/below")
    assert "half a surrogate pair" in await refused(tmp_path, "a", "x\ud800")
    assert "circle" in await refused(tmp_path, "circle")
    assert "can't be written: File name too long" in await refused(tmp_path, "new/" + "a" * 300)


@needs_no_root
async def test_a_read_only_file_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o444)
    assert "read-only" in await refused(tmp_path, "a")
    (tmp_path / "locked").mkdir(mode=0o555)
    assert "Permission denied" in await refused(tmp_path, "locked/a")


async def test_what_it_would_change_is_foreseen() -> None:
    def foreseen(path: str) -> Foreseen:
        return Write.spec.foreseen(WriteArguments(path, ""))

    assert Write.spec.is_changing
    assert foreseen("/etc/a") == Foreseen(is_changing=True, subject="/etc/a", writes=("/etc/a",))
    assert foreseen("~/a") == Foreseen(is_changing=True, subject="~/a", writes=(HOME_FILE,))
    assert foreseen("\0\ud800~").is_changing
