"""The tool that edits files."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.edit import STALE, EditTool
from hark.tools.files.last_reads import LastReads
from hark.tools.files.read import Read
from tests.tools.context import FakeContext, call_tool


async def edit(root: Path, path: str = "a", **arguments: Any) -> ToolOutput:
    return await call_tool(EditTool(LastReads()), {"path": path, **arguments}, FakeContext(root))


async def refused(root: Path, path: str = "a", **arguments: Any) -> str:
    before = (root / path).read_bytes() if (root / path).is_file() else None
    output = await edit(root, path, **arguments)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert before is None or (root / path).read_bytes() == before
    return output.text


async def test_exact_text_is_replaced_and_the_diff_returned(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    output = await edit(tmp_path, old="two", new="2")
    assert output.text == "Edited a: 1 replacement.\n--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert (tmp_path / "a").read_text() == "one\n2\nthree\n"


async def test_text_that_is_there_more_than_once_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\nx\nz\nx\n")
    text = await refused(tmp_path, old="x", new="w")
    assert text.startswith("old is 3 times in a, at lines 1, 3, 5. Give more of the lines")
    output = await edit(tmp_path, old="x", new="w", all=True)
    assert output.text.startswith("Edited a: 3 replacements.")
    assert (tmp_path / "a").read_text() == "w\ny\nw\nz\nw\n"


async def test_several_edits_are_made_in_order_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    edits = [{"old": "one", "new": "two, then"}, {"old": "two\n", "new": "end\n"}, {"old": "gone", "new": ""}]
    text = await refused(tmp_path, edits=edits)
    assert text.startswith("Nothing was changed, for edit 3 of 3 does not fit: old is not in a.")
    await edit(tmp_path, edits=edits[:2])
    assert (tmp_path / "a").read_text() == "two, then\nend\n"


@pytest.mark.parametrize(
    ("content", "old", "what"),
    [
        ("def f():\n\treturn 1\n", "def f():\n    return 1\n", "only the white space differs (tabs and blanks)"),
        ("  x = 1\n  y = 2\n", "    x = 1\n    y = 2", "only the white space differs (the indentation)"),
        ("x = 1  \ny\n", "x = 1\ny\n", "only the white space differs (at the line's end)"),
        ("f(a,b)\n", "f(a, b)", "only the white space differs (blanks inside the line)"),
        ("a\nb\r\nc\nd\ne\n", "a\nb\nc", "only the white space differs (a carriage return at the line's end)"),
        ("total = price * count\n", "total = prices * count", "The nearest passage, at line 1:\n     1\ttotal = price"),
        ("one\n", "    12\tone", "It begins with line numbers"),
        ("one\n", "entirely else", "Nothing there is like it: read the file again."),
        ("", "x", "Nothing there is like it"),
    ],
)
async def test_text_that_is_missing_is_told_with_what_differs(
    content: str, old: str, what: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(content.encode())
    assert what in await refused(tmp_path, old=old, new="z")


async def test_white_space_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("if x:\n\tgo()  \n")
    text = await refused(tmp_path, old="if x:\n    go()\n", new="z")
    assert "Yours:       ····go()\nIn the file: →go()··\n" in text


async def test_line_ends_and_the_missing_one_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\nthree")
    await edit(tmp_path, old="one\ntwo", new="1\n2\n2b")
    assert (tmp_path / "a").read_bytes() == b"1\r\n2\r\n2b\r\nthree"
    (tmp_path / "a").write_bytes(b"one\ntwo\nx\r\ny\n")
    await edit(tmp_path, old="x\r\ny", new="z")
    await edit(tmp_path, old="one\r\ntwo", new="1\r\n2")
    assert (tmp_path / "a").read_bytes() == b"1\n2\nz\n"


async def test_encodings_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9 one\n")
    await edit(tmp_path, old="café one", new="thé two")
    assert (tmp_path / "a").read_bytes() == b"th\xe9 two\n"
    assert "which has no '\\u20ac' (U+20AC)" in await refused(tmp_path, old="two", new="2 €")
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\n")
    await edit(tmp_path, old="one", new="€")
    assert (tmp_path / "a").read_bytes() == b"\xef\xbb\xbf\xe2\x82\xac\n"
    for codec, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        (tmp_path / "a").write_bytes(mark + "one\n".encode(codec))
        await edit(tmp_path, old="one", new="two")
        assert (tmp_path / "a").read_bytes() == mark + "two\n".encode(codec)


async def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "b").write_bytes(b"\0x")
    assert "old is empty" in await refused(tmp_path, old="", new="y")
    assert "nothing would change" in await refused(tmp_path, old="x", new="x")
    assert "edit needs old and new, or edits" in await refused(tmp_path, new="x")
    assert "either old and new, or edits" in await refused(tmp_path, old="x", new="y", edits=[{"old": "x", "new": "y"}])
    assert "edits[0]: object missing required field new." in await refused(tmp_path, edits=[{"old": "x"}])
    assert "edits[0]: expected object, got str." in await refused(tmp_path, edits=["x"])
    assert "binary" in await refused(tmp_path, "b", old="x", new="y")
    assert "does not exist" in await refused(tmp_path, "c", old="x", new="y")
    assert "is a folder" in await refused(tmp_path, ".", old="x", new="y")


async def test_calls_side_by_side_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"<{number}>\n" for number in range(50)))
    tool = EditTool(LastReads())
    context = FakeContext(tmp_path)
    calls = [call_tool(tool, {"path": "a", "old": f"<{n}>", "new": f"[{n}]"}, context) for n in range(50)]
    await asyncio.gather(*calls)
    assert (tmp_path / "a").read_text() == "".join(f"[{number}]\n" for number in range(50))


async def test_a_file_that_changed_since_it_was_read_is_edited_and_told(tmp_path: Path) -> None:
    reads = LastReads()
    context = FakeContext(tmp_path)
    (tmp_path / "a").write_text("one\ntwo\n")
    await call_tool(Read(reads), {"path": "a"}, context)
    first = await call_tool(EditTool(reads), {"path": "a", "old": "one", "new": "1"}, context)
    assert STALE not in first.text
    (tmp_path / "a").write_text("1\ntwo\nby another\n")
    second = await call_tool(EditTool(reads), {"path": "a", "old": "two", "new": "2"}, context)
    assert second.text.startswith(STALE)
    assert (tmp_path / "a").read_text() == "1\n2\nby another\n"
    await call_tool(Read(reads), {"path": "./a"}, context)
    third = await call_tool(EditTool(reads), {"path": str(tmp_path / "a"), "old": "2", "new": "two"}, context)
    assert STALE not in third.text


async def test_a_big_file_is_edited_soon_and_its_diff_is_short(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {number % 7}\n" for number in range(200_000)))
    output = await edit(tmp_path, old="line 3", new="row 3", all=True)
    assert output.text.startswith("Edited a: 28,571 replacements.")
    assert len(output.text.split("\n")) < 130


async def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x\n")
    (tmp_path / "a").symlink_to("real")
    await edit(tmp_path, old="x", new="y")
    assert (tmp_path / "real").read_text() == "y\n"
    assert (tmp_path / "a").is_symlink()
