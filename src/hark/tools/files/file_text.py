"""A file's bytes as text, and back: encoding, byte order mark and line ends are kept."""

import codecs

from msgspec import Struct

from hark.protocol.tool import ToolError

HEAD_BYTES = 8192
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Encoding(Struct, frozen=True):
    """How a file's text is written: a codec, behind a byte order mark if there is one."""

    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text.

        Raises:
            ToolError: It can't be said in this encoding.
        """
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            letter = text[error.start]
            raise ToolError(
                f"The file is in {self.codec}, which has no {letter!a} (U+{ord(letter):04X}). "
                "Leave it out, or convert the file first."
            ) from error

    def note(self) -> str:
        """Say what is not plain about it, or ""."""
        if self.codec == "latin-1":
            return "not valid UTF-8, shown as latin-1"
        return f"{self.codec} with a byte order mark" if self.mark else ""


class FileText(Struct, frozen=True):
    """A file's text, and how it is written."""

    text: str
    encoding: Encoding = Encoding()

    @property
    def newline(self) -> str:
        """The line end that most of its lines have."""
        return "\r\n" if 2 * self.text.count("\r\n") > self.text.count("\n") else "\n"


def mark_of(head: bytes) -> Encoding:
    """Return what a file's first bytes tell of its encoding: UTF-8 unless they are a mark."""
    return next((Encoding(codec, mark) for mark, codec in _MARKS if head.startswith(mark)), Encoding())


def is_binary(head: bytes) -> bool:
    """Tell from its first bytes whether a file is no text."""
    return b"\0" in head[:HEAD_BYTES] and not mark_of(head).codec.startswith("utf-16")


def decode(content: bytes) -> FileText:
    """Return the text of a file's bytes; what is not valid in its encoding is latin-1, which anything is."""
    encoding = mark_of(content)
    try:
        return FileText(content.removeprefix(encoding.mark).decode(encoding.codec), encoding)
    except UnicodeDecodeError:
        return FileText(content.decode("latin-1"), Encoding("latin-1"))
