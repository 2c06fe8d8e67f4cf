"""Decides how a file's bytes, encoding and line endings survive an edit: untouched text keeps its bytes."""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable

from msgspec import Struct

from hark.protocol.tool import ToolError

HEAD_BYTES = 8192
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Bytes that text in a single-byte encoding practically never contains.
_NEVER_SINGLE_BYTE_TEXT = frozenset(b"\x81\x8d\x8f\x90\x9d\xff".decode(errors="surrogateescape"))


class Encoding(Struct, frozen=True):
    """A file's text encoding: a codec, and the byte order mark if there is one.

    Invalid bytes in UTF-8 are decoded to surrogate escapes, so that they can be written back unchanged.
    """

    codec: str = "utf-8"
    mark: bytes = b""
    has_invalid_bytes: bool = False

    def decode(self, content: bytes) -> str:
        """Decode bytes without the byte order mark. Never fails; invalid UTF-16 is replaced."""
        return content.decode(self.codec, "surrogateescape" if self.codec == "utf-8" else "replace")

    def encode(self, text: str) -> bytes:
        """Encode a text that `decode` returned, or an edited form of it.

        Raises:
            ToolError: The encoding can't represent a character in the text.
        """
        try:
            return self.mark + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise ToolError(
                f"The file's encoding {self.codec} has no character {character!a} (U+{ord(character):04X}). "
                "Remove that character, or convert the file first."
            ) from error

    def describe(self) -> str:
        """Describe the encoding if it is unusual. Return "" for plain UTF-8."""
        if self.has_invalid_bytes:
            return "UTF-8 with invalid bytes, displayed as \\xNN"
        if self.codec in ("latin-1", "cp1252"):
            return f"not valid UTF-8, shown as {self.codec}"
        return f"{self.codec} with a byte order mark" if self.mark else ""


class FileText(Struct, frozen=True):
    """A file's text and its encoding."""

    text: str
    encoding: Encoding = Encoding()


class Splice(Struct, frozen=True):
    """New text for the range from `start` to `end` of a plain text."""

    start: int
    end: int
    new: str


class PlainText:
    """A text with its CRLF line endings shown as newlines. Splices keep the bytes of all other text.

    With `is_literal`, carriage returns are ordinary characters, and new text is used unchanged. With `end_last_line`,
    the last line always has a newline in `text`.
    """

    def __init__(self, raw: str, *, is_literal: bool = False, end_last_line: bool = False) -> None:
        self._raw = raw
        self._is_literal = is_literal
        if end_last_line and raw and not raw.endswith("\n"):
            is_crlf = not is_literal and (raw.endswith("\r") or self._newline_at(len(raw), len(raw)) == "\r\n")
            self._raw += "\r\n" if is_crlf else "\n"
        self.text = self._raw if is_literal else plain_newlines(self._raw)
        has_crlf = len(self.text) < len(self._raw)
        self._crlf = [found.start() - at for at, found in enumerate(re.finditer("\r\n", self._raw))] if has_crlf else []

    def has_crlf_around(self, offset: int) -> bool:
        """Return whether the line before the offset, or the line at the offset, ends with a hidden CRLF."""
        at = self._raw_offset(offset)
        return bool(self._crlf) and "\r\n" in (self._raw[max(0, at - 2) : at], self._newline_at(at, at))

    def replace(self, splices: Iterable[Splice], *, ends_with_newline: bool = True) -> str:
        """Return the raw text after the splices, which must be in order and must not overlap.

        If `ends_with_newline` is False, the newline at the end is removed.
        """
        pieces: list[str] = []
        at = 0
        for splice in splices:
            start, end = self._raw_offset(splice.start), self._raw_offset(splice.end)
            new = splice.new if self._is_literal else splice.new.replace("\n", self._newline_at(start, end))
            pieces += [self._raw[at:start], new]
            at = end
        text = "".join([*pieces, self._raw[at:]])
        if ends_with_newline:
            return text
        return text[:-2] if text.endswith("\r\n") and not self._is_literal else text[:-1]

    def _raw_offset(self, offset: int) -> int:
        return offset + bisect_left(self._crlf, offset)

    def _newline_at(self, start: int, end: int) -> str:
        """Return the line ending of the replaced lines, or of the next line, or of the previous one."""
        at = self._raw.find("\n", start, end)
        at = at if at >= 0 else self._raw.find("\n", end)
        at = at if at >= 0 else self._raw.rfind("\n", 0, start)
        return "\r\n" if at > 0 and self._raw[at - 1] == "\r" else "\n"


def plain_newlines(text: str) -> str:
    """Return a text with newlines in place of CRLF."""
    return text.replace("\r\n", "\n")


def detect_encoding(head: bytes) -> Encoding:
    """Return the encoding that a byte order mark in a file's first bytes declares, or UTF-8 if there is no mark."""
    return next((Encoding(codec, mark) for mark, codec in _BYTE_ORDER_MARKS if head.startswith(mark)), Encoding())


def guess_encoding(content: bytes, mark: bytes = b"") -> Encoding:
    """Return the encoding of bytes that should be UTF-8, without their byte order mark.

    Bytes that are invalid in UTF-8 mean a single-byte encoding, unless other bytes contradict it.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        characters = set(content.decode(errors="surrogateescape"))
        invalid = {one for one in characters if "\udc80" <= one <= "\udcff"}
        is_utf8 = any(one > "\x7f" for one in characters - invalid)
        if mark or is_utf8 or invalid & _NEVER_SINGLE_BYTE_TEXT:
            return Encoding("utf-8", mark, has_invalid_bytes=True)
        return Encoding("cp1252" if min(invalid) <= "\udc9f" else "latin-1")
    return Encoding("utf-8", mark)


def is_binary(head: bytes) -> bool:
    """Return whether a file's first bytes show that it is not text. PDF and UTF-32 count as binary."""
    if head.startswith(b"%PDF-"):
        return True
    return b"\0" in head[:HEAD_BYTES] and not detect_encoding(head).codec.startswith("utf-16")


def decode_text(content: bytes) -> FileText:
    """Decode a file's bytes for display or comparison. Never fails."""
    encoding = detect_encoding(content)
    body = content.removeprefix(encoding.mark)
    if encoding.codec == "utf-8":
        encoding = guess_encoding(body, encoding.mark)
    return FileText(encoding.decode(body), encoding)


def decode_for_edit(content: bytes, name: str) -> FileText:
    """Decode a file's bytes so that unedited text can be written back unchanged.

    Raises:
        ToolError: The file is binary, or decoding loses bytes.
    """
    if is_binary(content):
        raise ToolError(f"{name} is a binary file. Change it with a shell command instead.")
    file = decode_text(content)
    if file.encoding.encode(file.text) != content:
        raise ToolError(f"{name} is not valid {file.encoding.codec}. Change it with a shell command instead.")
    return file


def encode_new_text(text: str) -> bytes:
    """Encode text from a tool call as UTF-8.

    Raises:
        ToolError: The text contains an unpaired surrogate, which no encoding can represent.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The text has an unpaired surrogate, which can't be encoded as UTF-8. Remove it.") from error


def displayable(text: str) -> str:
    """Return a decoded text with each invalid byte as \\xNN, so that it can be encoded as JSON."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
