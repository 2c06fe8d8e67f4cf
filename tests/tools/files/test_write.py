"""The `write` tool."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import PredictedEffects, ToolOutput
from hark.tools.files.last_reads import LastReads
from hark.tools.files.write import WriteArguments, WriteTool
from tests.tools.fake_context import FakeContext, call_tool

HOME_FILE = str(Path("~/a").expanduser())
skip_for_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")


async def write(root: Path, path: str, content: str) -> ToolOutput:
    return await call_tool(WriteTool(LastReads()), {"path": path, "content": content}, FakeContext(root))


def list_paths(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


async def expect_error(root: Path, path: str, content: str = "x") -> str:
    before = list_paths(root)
    output = await write(root, path, content)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert list_paths(root) == before
    return output.text


async def test_a_new_file_is_created_with_its_parent_folders(tmp_path: Path) -> None:
    output = await write(tmp_path, "a/b/c.txt", "one\ntwo")
    assert output == ToolOutput("Created a/b/c.txt: 2 lines, 7 bytes.")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"one\ntwo"
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.txt"]


async def test_overwriting_a_file_returns_a_diff(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    output = await write(tmp_path, "a", "one\n2\n")
    assert output.text == "Overwrote a: 6 bytes, previously 8.\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
    assert (await write(tmp_path, "a", "one\n2\n")).text == "a already has exactly this content; nothing was changed."


async def test_the_mode_is_preserved_and_a_new_file_gets_the_default_mode(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await write(tmp_path, "run.sh", "new")
    assert script.stat().st_mode & 0o7777 == 0o750
    (tmp_path / "usual").touch()
    await write(tmp_path, "made", "x")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "usual").stat().st_mode


async def test_writing_to_a_link_changes_its_target_and_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    (tmp_path / "dangling").symlink_to("real/new")
    await write(tmp_path, "link", "new")
    await write(tmp_path, "dangling", "made")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"
    assert (tmp_path / "real" / "new").read_text() == "made"


async def test_the_result_notes_lost_line_endings_encodings_and_binary_content(tmp_path: Path) -> None:
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbfa\n")
    (tmp_path / "binary").write_bytes(b"\0\1")
    assert "[its line endings were CRLF before, and are LF now]" in (await write(tmp_path, "crlf", "a\n")).text
    assert "[it was utf-8 with a byte order mark before" in (await write(tmp_path, "mark", "b\n")).text
    assert (await write(tmp_path, "binary", "b\n")).text.endswith("It was a binary file before.")


async def test_a_failed_write_causes_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    assert "folder is a folder" in await expect_error(tmp_path, "folder")
    assert "new/ names a folder" in await expect_error(tmp_path, "new/")
    assert "pipe is a named pipe" in await expect_error(tmp_path, "pipe")
    assert "is a device" in await expect_error(tmp_path, "/dev/null")
    assert "can't be written" in await expect_error(tmp_path, "file/below")
    assert "an unpaired surrogate" in await expect_error(tmp_path, "a", "x\ud800")
    assert "circle" in await expect_error(tmp_path, "circle")
    assert "can't be written: File name too long" in await expect_error(tmp_path, "new/" + "a" * 300)


@skip_for_root
async def test_a_read_only_file_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o444)
    assert "read-only" in await expect_error(tmp_path, "a")
    (tmp_path / "locked").mkdir(mode=0o555)
    assert "Permission denied" in await expect_error(tmp_path, "locked/a")


async def test_the_path_that_a_write_would_change_is_predicted() -> None:
    def predict(path: str) -> PredictedEffects:
        return WriteTool.spec.predict_effects(WriteArguments(path, ""))

    assert WriteTool.spec.is_changing
    assert predict("/etc/a") == PredictedEffects(is_changing=True, subject="/etc/a", writes=("/etc/a",))
    assert predict("~/a") == PredictedEffects(is_changing=True, subject="~/a", writes=(HOME_FILE,))
    assert predict("\0\ud800~").is_changing


async def test_a_write_that_waits_for_the_disk_is_finished_and_reported_when_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, syncing, release = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    real_fsync = os.fsync

    def slow_fsync(descriptor: int) -> None:
        loop.call_soon_threadsafe(syncing.set)
        release.wait()
        real_fsync(descriptor)

    monkeypatch.setattr("hark.tools.files.atomic_write.os.fsync", slow_fsync)
    call = asyncio.create_task(write(tmp_path, "a", "text"))
    await syncing.wait()
    call.cancel()
    done, _ = await asyncio.wait([call], timeout=0.1)
    assert not done, "the call must not end while its thread can still change the file"
    release.set()
    assert (await call).text.startswith("Created a")
    assert (tmp_path / "a").read_text() == "text"
