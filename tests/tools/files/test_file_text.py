"""How bytes, encodings and line endings survive an edit."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hark.protocol.tool import ToolError
from hark.tools.files.edit import EditTool
from hark.tools.files.file_text import PlainText, Splice, decode_for_edit, decode_text, displayable
from hark.tools.files.last_reads import LastReads
from hark.tools.files.patch import PatchTool
from hark.tools.files.read import ReadTool
from tests.tools.fake_context import FakeContext, call_tool

ENDINGS = (b"\n", b"\r\n", b"\r", b"\x0c\n", b"\xe2\x80\xa8\n", b"")
PARTS = (
    b"one",
    b"gr\xc3\xbc\xc3\x9fe",
    b"caf\xe9",
    b"\x93quoted\x94",
    b"\xff",
    b"\xf0\x9f\x99\x82",
    b"\t x  ",
    b"\xc3",
)
noise = st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(ENDINGS)), max_size=12).map(
    lambda parts: b"".join(part + ending for part, ending in parts)
)


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(before=noise, after=noise, mark=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_bytes_around_an_edit_are_unchanged_in_any_encoding(before: bytes, after: bytes, mark: bytes) -> None:
    content = mark + before + b"<TARGET>" + after
    file = decode_for_edit(content, "a")
    plain = PlainText(file.text)
    at = plain.text.index("<TARGET>")
    edited = file.encoding.encode(plain.replace([Splice(at, at + 8, "NEW")]))
    assert edited == mark + before + b"NEW" + after
    msgspec.json.encode(displayable(file.text))


@settings(derandomize=True, deadline=None, database=None, max_examples=100)
@given(
    # A NUL after the byte order mark of UTF-16 is the byte order mark of UTF-32.
    before=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    after=st.text(max_size=20),
    codec=st.sampled_from(["utf-16-le", "utf-16-be"]),
)
def test_bytes_around_an_edit_are_unchanged_in_utf_16(before: str, after: str, codec: str) -> None:
    content = f"\ufeff{before}<TARGET>{after}".encode(codec)
    file = decode_for_edit(content, "a")
    assert file.encoding.encode(file.text.replace("<TARGET>", "ü€")) == f"\ufeff{before}ü€{after}".encode(codec)


@pytest.mark.parametrize(
    "content",
    [
        "one\n".encode("utf-16-le"),
        "one\n".encode("utf-32"),
        b"\x00\x00\xfe\xff" + "one\n".encode("utf-32-be"),
        b"\xff\xfeo\0n\0e",
        b"\xff\xfe\x00\xd8o\0",
    ],
)
def test_bytes_that_can_not_be_decoded_without_loss_are_refused(content: bytes) -> None:
    with pytest.raises(ToolError, match=r"a is (a binary file|not valid utf-16-le)\. Change it with a shell command"):
        decode_for_edit(content, "a")


@pytest.mark.parametrize(
    ("content", "codec"),
    [
        (b"caf\xe9", "latin-1"),
        (b"\x93caf\xe9\x94", "cp1252"),
        (b"caf\xe9 \xc3\xbc", "utf-8"),
        (b"one \xff two", "utf-8"),
        (b"\xef\xbb\xbfcaf\xe9", "utf-8"),
    ],
)
def test_a_single_byte_encoding_is_assumed_only_if_no_byte_contradicts_it(content: bytes, codec: str) -> None:
    assert decode_text(content).encoding.codec == codec


async def test_one_invalid_byte_keeps_its_value_and_new_text_is_written_as_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("größe\n".encode() + b"bad \xe9 byte\nend\n")
    context = FakeContext(tmp_path)
    shown = await call_tool(ReadTool(LastReads()), {"path": "a"}, context)
    assert "bad \\xe9 byte" in shown.text
    output = await call_tool(EditTool(LastReads()), {"path": "a", "old": "end", "new": "über"}, context)
    patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-größe\n+Größe\n"
    patched = await call_tool(PatchTool(LastReads()), {"patch": patch}, context)
    assert not output.is_error
    assert not patched.is_error
    assert (tmp_path / "a").read_bytes() == "Größe\n".encode() + b"bad \xe9 byte\n" + "über\n".encode()
    failed = await call_tool(EditTool(LastReads()), {"path": "a", "old": "bad \\xe9 bytes", "new": "x"}, context)
    assert "is a byte that is not valid UTF-8" in failed.text
    for text in (shown.text, output.text, patched.text, failed.text):
        text.encode()
