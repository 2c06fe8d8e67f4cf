"""The `edit` tool."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.edit import STALE_NOTE, EditTool
from hark.tools.files.last_reads import LastReads
from hark.tools.files.read import ReadTool
from tests.tools.fake_context import FakeContext, call_tool


async def edit(root: Path, path: str = "a", **arguments: Any) -> ToolOutput:
    return await call_tool(EditTool(LastReads()), {"path": path, **arguments}, FakeContext(root))


async def expect_error(root: Path, path: str = "a", **arguments: Any) -> str:
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


async def test_text_that_occurs_more_than_once_is_replaced_only_if_all_is_set(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\nx\nz\nx\n")
    text = await expect_error(tmp_path, old="x", new="w")
    assert text.startswith("old occurs 3 times in a, at lines 1, 3, 5. Include more of the")
    output = await edit(tmp_path, old="x", new="w", all=True)
    assert output.text.startswith("Edited a: 3 replacements.")
    assert (tmp_path / "a").read_text() == "w\ny\nw\nz\nw\n"


async def test_several_edits_are_applied_in_order_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    edits = [{"old": "one", "new": "two, then"}, {"old": "two\n", "new": "end\n"}, {"old": "gone", "new": ""}]
    text = await expect_error(tmp_path, edits=edits)
    assert text.startswith("Nothing was changed. Edit 3 of 3 failed: old was not found in a.")
    await edit(tmp_path, edits=edits[:2])
    assert (tmp_path / "a").read_text() == "two, then\nend\n"


@pytest.mark.parametrize(
    ("content", "old", "explanation"),
    [
        ("def f():\n\treturn 1\n", "def f():\n    return 1\n", "only whitespace differs (tabs versus spaces)"),
        ("  x = 1\n  y = 2\n", "    x = 1\n    y = 2", "only whitespace differs (the indentation)"),
        ("x = 1  \ny\n", "x = 1\ny\n", "only whitespace differs (at the end of the line)"),
        ("f(a,b)\n", "f(a, b)", "only whitespace differs (spaces inside the line)"),
        ("a\nb\r\r\nc\nd\n", "a\nb\nc", "only whitespace differs (a carriage return at the end of the line)"),
        (
            "total = price * count\n",
            "total = prices * count",
            "The most similar passage, at line 1:\n     1\ttotal = price",
        ),
        ("one\n", "    12\tone", "Your text contains line numbers"),
        ("one\n", "entirely else", "The file has no similar text. Read it again."),
        ("", "x", "The file has no similar text"),
    ],
)
async def test_error_for_missing_text_explains_the_difference(
    content: str, old: str, explanation: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(content.encode())
    assert explanation in await expect_error(tmp_path, old=old, new="z")


async def test_error_for_missing_text_makes_whitespace_visible(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("if x:\n\tgo()  \n")
    text = await expect_error(tmp_path, old="if x:\n    go()\n", new="z")
    assert "Yours:       ····go()⏎\nIn the file: →go()··⏎\n" in text


async def test_line_endings_and_a_missing_final_newline_are_preserved(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\nthree")
    await edit(tmp_path, old="one\ntwo", new="1\n2\n2b")
    assert (tmp_path / "a").read_bytes() == b"1\r\n2\r\n2b\r\nthree"
    (tmp_path / "a").write_bytes(b"one\ntwo\nx\r\ny\n")
    await edit(tmp_path, old="x\r\ny", new="z")
    await edit(tmp_path, old="one\r\ntwo", new="1\r\n2")
    assert (tmp_path / "a").read_bytes() == b"1\n2\nz\n"


async def test_encoding_and_byte_order_mark_are_preserved(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9 one\n")
    await edit(tmp_path, old="café one", new="thé two")
    assert (tmp_path / "a").read_bytes() == b"th\xe9 two\n"
    assert "has no character '\\u20ac' (U+20AC)" in await expect_error(tmp_path, old="two", new="2 €")
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\n")
    await edit(tmp_path, old="one", new="€")
    assert (tmp_path / "a").read_bytes() == b"\xef\xbb\xbf\xe2\x82\xac\n"
    for codec, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        (tmp_path / "a").write_bytes(mark + "one\n".encode(codec))
        await edit(tmp_path, old="one", new="two")
        assert (tmp_path / "a").read_bytes() == mark + "two\n".encode(codec)


async def test_invalid_edits_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "b").write_bytes(b"\0x")
    assert "old is empty" in await expect_error(tmp_path, old="", new="y")
    assert "nothing would change" in await expect_error(tmp_path, old="x", new="x")
    assert "edit needs either old and new, or edits" in await expect_error(tmp_path, new="x")
    assert "Give either old and new, or edits" in await expect_error(
        tmp_path, old="x", new="y", edits=[{"old": "x", "new": "y"}]
    )
    assert "edits[0]: object missing required field new." in await expect_error(tmp_path, edits=[{"old": "x"}])
    assert "edits[0]: expected object, got str." in await expect_error(tmp_path, edits=["x"])
    assert "binary" in await expect_error(tmp_path, "b", old="x", new="y")
    assert "does not exist" in await expect_error(tmp_path, "c", old="x", new="y")
    assert "is a folder" in await expect_error(tmp_path, ".", old="x", new="y")


async def test_parallel_edits_to_one_file_lose_no_change(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"<{number}>\n" for number in range(50)))
    tool = EditTool(LastReads())
    context = FakeContext(tmp_path)
    calls = [call_tool(tool, {"path": "a", "old": f"<{n}>", "new": f"[{n}]"}, context) for n in range(50)]
    await asyncio.gather(*calls)
    assert (tmp_path / "a").read_text() == "".join(f"[{number}]\n" for number in range(50))


async def test_editing_a_file_that_changed_since_it_was_read_adds_a_note(tmp_path: Path) -> None:
    reads = LastReads()
    context = FakeContext(tmp_path)
    (tmp_path / "a").write_text("one\ntwo\n")
    await call_tool(ReadTool(reads), {"path": "a"}, context)
    first = await call_tool(EditTool(reads), {"path": "a", "old": "one", "new": "1"}, context)
    assert STALE_NOTE not in first.text
    (tmp_path / "a").write_text("1\ntwo\nby another\n")
    second = await call_tool(EditTool(reads), {"path": "a", "old": "two", "new": "2"}, context)
    assert second.text.startswith(STALE_NOTE)
    assert (tmp_path / "a").read_text() == "1\n2\nby another\n"
    await call_tool(ReadTool(reads), {"path": "./a"}, context)
    third = await call_tool(EditTool(reads), {"path": str(tmp_path / "a"), "old": "2", "new": "two"}, context)
    assert STALE_NOTE not in third.text


async def test_editing_a_big_file_returns_a_short_diff(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {number % 7}\n" for number in range(200_000)))
    output = await edit(tmp_path, old="line 3", new="row 3", all=True)
    assert output.text.startswith("Edited a: 28,571 replacements.")
    assert len(output.text.split("\n")) < 130


async def test_editing_through_a_link_changes_the_target_and_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x\n")
    (tmp_path / "a").symlink_to("real")
    await edit(tmp_path, old="x", new="y")
    assert (tmp_path / "real").read_text() == "y\n"
    assert (tmp_path / "a").is_symlink()


async def test_an_edit_keeps_hard_links_and_the_mode(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a longer text\n")
    (tmp_path / "a").chmod(0o750)
    (tmp_path / "other").hardlink_to(tmp_path / "a")
    await edit(tmp_path, old="a longer text", new="x")
    assert (tmp_path / "other").read_text() == "x\n"
    assert (tmp_path / "other").samefile(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o750


async def test_text_that_overlaps_itself_is_ambiguous(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("}\n}\n}\n")
    assert "old occurs 2 times in a, at lines 1, 2." in await expect_error(tmp_path, old="}\n}\n", new="]\n")


async def test_lines_with_mixed_endings_are_matched_and_keep_their_endings(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\r\nb\nc\r\nd\n\x0ce\rf")
    await edit(tmp_path, old="a\nb\nc\nd", new="a\nB\nB2\nc\nd")
    assert (tmp_path / "a").read_bytes() == b"a\r\nB\nB2\nc\r\nd\n\x0ce\rf"
    (tmp_path / "a").write_bytes(b"x\ny\nx\r\ny\r\n")
    assert "old occurs 2 times" in await expect_error(tmp_path, old="x\ny", new="z")
    await edit(tmp_path, old="x\r\ny", new="x\ny")
    assert (tmp_path / "a").read_bytes() == b"x\ny\nx\ny\r\n"


@pytest.mark.parametrize(
    ("content", "old", "explanation"),
    [
        ("foo()\n    bar()\n", "foo()\nbar()", "At line 2 only whitespace differs (the indentation)"),
        ("    foo()\n    bar()\n", "foo()\nbar()\n", "Yours:       bar()⏎\nIn the file: ····bar()⏎"),
        ("a\nb", "b\n", "At line 2 only whitespace differs (the file has no newline at its end)"),
        ("a =\nb\n", "a = b\n", "At line 1 only whitespace differs (a line break)"),
        ("a\xa0= b\n", "a = b\n", "(the file has U+00A0, NO-BREAK SPACE)"),
        ("a\xa0= b\n", "a = b\n", "In the file: a<U+00A0>=·b⏎"),
        ("a\u200bb\n", "ab\n", "(the file has U+200B, ZERO WIDTH SPACE)"),
        ("a = b\n", "a =\xa0b\n", "(your text has U+00A0, NO-BREAK SPACE)"),
        (f"{'x' * 500} y\n", f"{'x' * 500}  y", "xxx··y"),
        ("abc def\n", "abc\n", "(your line ends, but the file's line continues)"),
        ("abc def\n", "\ndef", "(your line begins, but the file's line has text before it)"),
    ],
)
async def test_error_for_missing_text_shows_the_true_difference(
    content: str, old: str, explanation: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(content.encode())
    text = await expect_error(tmp_path, old=old, new="z")
    assert explanation in text
    lines = text.split("\n")
    if len(lines) > 2:
        assert lines[1].removeprefix("Yours:      ") != lines[2].removeprefix("In the file:")
