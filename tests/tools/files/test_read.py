"""The `read` tool."""

import os
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.last_reads import LastReads
from hark.tools.files.read import ReadTool
from tests.tools.fake_context import FakeContext, call_tool


async def read(root: Path, path: str, **arguments: Any) -> ToolOutput:
    return await call_tool(ReadTool(LastReads()), {"path": path, **arguments}, FakeContext(root))


async def expect_error(root: Path, path: str, **arguments: Any) -> str:
    output = await read(root, path, **arguments)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    return output.text


async def test_each_line_is_returned_with_its_line_number(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\n  three\n")
    assert await read(tmp_path, "a") == ToolOutput("     1\tone\n     2\t\n     3\t  three")
    assert not ReadTool(LastReads()).spec.is_changing


async def test_reading_a_range_reports_its_position_and_how_to_continue(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    output = await read(tmp_path, "a", offset=3, limit=2)
    assert output.text == "     3\tline 3\n     4\tline 4\n[lines 3 to 4 of 10; continue with offset 5]"
    assert (await read(tmp_path, "a", offset=10)).text == "    10\tline 10\n[lines 10 to 10 of 10]"
    assert await expect_error(tmp_path, "a", offset=11) == "The file has 10 lines; offset 11 is past its end."
    assert (await read(tmp_path, "a", offset=0, limit=0)).text == (await read(tmp_path, "a")).text
    assert "limit: expected a whole number of at least 1" in await expect_error(tmp_path, "a", limit=-1)


@pytest.mark.parametrize("size", [1, 7, 65_535, 65_536, 65_537, 200_000])
async def test_lines_after_a_first_line_of_any_size_are_read_correctly(size: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * size + "\nsecond\nthird")
    output = await read(tmp_path, "a", offset=2)
    assert output.text == "     2\tsecond\n     3\tthird\n[lines 2 to 3 of 3]\n[no newline at the end of the file]"


async def test_a_big_file_is_read_in_parts_of_limited_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{number} {'x' * 90}\n" for number in range(1, 50_001)))
    output = await read(tmp_path, "a", limit=50_000)
    assert len(output.text) < 70_000
    last = output.text.rpartition("\n")[2]
    assert last.startswith("[lines 1 to ")
    offset = int(last.removesuffix("]").rpartition(" ")[2])
    next_part = await read(tmp_path, "a", offset=offset, limit=1)
    assert next_part.text.startswith(f"{offset:>6}\t{offset} xxx")
    assert "of 50,000" in next_part.text


async def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write(b"first\nsecond\n" * 1_000)
        file.truncate(10_000_000_000)
    output = await read(tmp_path, "a", limit=1)
    assert output.text == (
        "     1\tfirst\n[lines 1 to 1; the file continues, 10,000,000,000 bytes in total; continue with offset 2]"
    )


async def test_a_long_line_is_truncated_between_characters(tmp_path: Path) -> None:
    for start in range(4):
        (tmp_path / "a").write_text("x" * start + "€" * 3_000 + "\nend\n")
        text = (await read(tmp_path, "a")).text
        assert "\ufffd" not in text
        assert "latin-1" not in text
        assert "€… [" in text
        assert text.endswith("     2\tend")


async def test_unusual_encodings_and_line_endings_are_noted(tmp_path: Path) -> None:
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbfone\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    (tmp_path / "wide").write_bytes("wide €\nnext\n".encode("utf-16"))
    (tmp_path / "crlf").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / "mixed").write_bytes(b"one\r\ntwo\nthree\n")
    assert (await read(tmp_path, "mark")).text == "     1\tone\n[utf-8 with a byte order mark]"
    assert (await read(tmp_path, "latin")).text == "     1\tcafé\n[not valid UTF-8, shown as latin-1]"
    assert (await read(tmp_path, "wide")).text == ("     1\twide €\n     2\tnext\n[utf-16-le with a byte order mark]")
    assert (await read(tmp_path, "crlf")).text == "     1\tone\n     2\ttwo\n[lines end with CRLF]"
    assert (await read(tmp_path, "mixed")).text == "     1\tone\r\n     2\ttwo\n     3\tthree"


async def test_an_empty_file_is_reported_as_empty(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert await read(tmp_path, "a") == ToolOutput("[the file is empty]")


async def test_paths_that_are_not_text_files_cause_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert "is a binary file (it begins with 7f 45 4c 46 00 00)" in await expect_error(tmp_path, "b")
    assert await expect_error(tmp_path, "p.png") == "p.png is an image (image/png). Use view_image to see it."
    assert await expect_error(tmp_path, "folder") == "folder is a folder. Use list to see its contents."
    assert "pipe is a named pipe" in await expect_error(tmp_path, "pipe")
    assert "is a device" in await expect_error(tmp_path, "/dev/zero")
    assert "is a URL" in await expect_error(tmp_path, "https://example.org/a")
    assert "path is empty" in await expect_error(tmp_path, " ")
    assert "NUL" in await expect_error(tmp_path, "a\0b")
    assert "is not a valid path" in await expect_error(tmp_path, "a\ud800")
    assert "File name too long" in await expect_error(tmp_path, "a" * 300)


async def test_error_for_a_missing_file_suggests_similar_names(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "Main.py").touch()
    assert await expect_error(tmp_path, "src/main.py") == "src/main.py does not exist. Similar names: src/Main.py."
    assert "nor does its folder scr" in await expect_error(tmp_path, "scr/main.py")
    assert await expect_error(tmp_path, "zzz") == "zzz does not exist. Use list or search to find it."
    assert "Not a directory" in await expect_error(tmp_path, "src/Main.py/x")


async def test_paths_may_be_absolute_or_relative_to_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "work").mkdir()
    for path in ("~/a", str(tmp_path / "a"), "../a", f"file://{tmp_path}/a"):
        assert (await read(tmp_path / "work", path)).text == "     1\tx"


async def test_reading_proc_files_does_not_block(tmp_path: Path) -> None:
    output = await read(tmp_path, "/proc/self/status")
    assert "Name:" in output.text
    output = await read(tmp_path, "/proc/kmsg")
    assert output.is_error or output.text
