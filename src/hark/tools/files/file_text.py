"""Decodes a file's bytes to text and encodes it again, preserving encoding, byte order mark and line endings."""

import codecs

from msgspec import Struct

from hark.protocol.tool import ToolError

HEAD_BYTES = 8192
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Encoding(Struct, frozen=True):
    """A file's text encoding: a codec, and the byte order mark if there is one."""

    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Encode a text.

        Raises:
            ToolError: The encoding can't represent a character in the text.
        """
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise ToolError(
                f"The file's encoding {self.codec} has no character {character!a} (U+{ord(character):04X}). "
                "Remove that character, or convert the file first."
            ) from error

    def describe(self) -> str:
        """Describe the encoding if it is unusual. Return "" for plain UTF-8."""
        if self.codec == "latin-1":
            return "not valid UTF-8, shown as latin-1"
        return f"{self.codec} with a byte order mark" if self.mark else ""


class FileText(Struct, frozen=True):
    """A file's text and its encoding."""

    text: str
    encoding: Encoding = Encoding()

    @property
    def newline(self) -> str:
        """The line ending that most lines of the text have."""
        return "\r\n" if 2 * self.text.count("\r\n") > self.text.count("\n") else "\n"


def detect_encoding(head: bytes) -> Encoding:
    """Return the encoding that a byte order mark in a file's first bytes declares, or UTF-8 if there is no mark."""
    return next((Encoding(codec, mark) for mark, codec in _BYTE_ORDER_MARKS if head.startswith(mark)), Encoding())


def is_binary(head: bytes) -> bool:
    """Return whether a file's first bytes show that it is not text."""
    if head.startswith(b"%PDF-"):
        return True
    return b"\0" in head[:HEAD_BYTES] and not detect_encoding(head).codec.startswith("utf-16")


def decode_text(content: bytes) -> FileText:
    """Decode a file's bytes. If they are invalid in the detected encoding, use latin-1, which accepts any byte."""
    encoding = detect_encoding(content)
    try:
        return FileText(content.removeprefix(encoding.mark).decode(encoding.codec), encoding)
    except UnicodeDecodeError:
        return FileText(content.decode("latin-1"), Encoding("latin-1"))
