"""The tool that reads a text file, or some lines of it."""

import os
from typing import Annotated

import anyio.lowlevel
from msgspec import Struct

from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.file_text import HEAD_BYTES, Encoding, decode, is_binary, mark_of
from hark.tools.files.image_format import picture_type
from hark.tools.files.last_reads import LastReads
from hark.tools.files.paths import FileName, open_file, resolve, shown

LINE_BYTES = 4_000
WINDOW_BYTES = 60_000


class WindowLine(Struct):
    """A line's first bytes, without its end, and how many more it has."""

    content: bytes = b""
    cut: int = 0


class LineWindow:
    """Takes a file's pieces in order, keeps the lines from `first` (the first of all is 1), and counts all.

    It keeps `count` lines, or fewer when they are long.
    """

    def __init__(self, first: int, count: int) -> None:
        self.lines: list[WindowLine] = []
        self.total = 0
        self._first = first
        self._last = first + count - 1
        self._room = WINDOW_BYTES
        self._line = WindowLine()
        self._is_open = False

    @property
    def is_full(self) -> bool:
        """Whether nothing more will be kept."""
        return self.total >= self._last

    def take(self, piece: bytes) -> None:
        """Take the next bytes, at least one."""
        ends = piece.count(b"\n")
        if self.is_full or self.total + ends + 1 < self._first:
            self.total += ends
            self._is_open = not piece.endswith(b"\n")
            return
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._extend(part)
            self._end_line()
        self._extend(rest)

    def end(self) -> bool:
        """The file is over. Return whether its last line had its end."""
        is_ended = not self._is_open
        if self._is_open:
            self._end_line()
        return is_ended

    def _extend(self, part: bytes) -> None:
        if part:
            self._is_open = True
            room = LINE_BYTES - len(self._line.content)
            self._line.content += part[:room]
            self._line.cut += len(part[room:])

    def _end_line(self) -> None:
        self.total += 1
        if self._first <= self.total <= self._last:
            self._room -= len(self._line.content)
            self.lines.append(self._line)
            if self._room <= 0:
                self._last = self.total
        self._line = WindowLine()
        self._is_open = False


DEFAULT_LINES = 2_000
PIECE_BYTES = 65_536
COUNTED_BYTES = 64 * 1024 * 1024
WIDE_BYTES = 8 * 1024 * 1024


class ReadArguments(ToolArguments, frozen=True):
    """Read a text file. Each line comes with its number and a tab before it, which are not part of the file.

    Without a range you get the first 2000 lines, and are told how to read on.
    """

    path: FileName
    offset: Annotated[int, doc("The first line to read; the file begins at 1.", ge=1)] = 1
    limit: Annotated[int, doc(f"How many lines ({DEFAULT_LINES}).", ge=1)] = DEFAULT_LINES


class Read:
    """Reads files, and remembers what each session saw of them."""

    spec = tool_spec(ReadArguments, "read")

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: ReadArguments, context: CallContext) -> ToolOutput:
        """Return the lines. Safe to cancel at any time."""
        path = resolve(arguments.path, context.workspace)
        window = LineWindow(arguments.offset, arguments.limit)
        with open_file(path, context.workspace) as descriptor:
            passed = await _fill(window, descriptor, shown(path, context.workspace))
        self._reads.note(context, path)
        return _output(window, arguments.offset, passed)


class _Passed(Struct, frozen=True):
    """What was seen of a file as it passed by: all of it, or not; and whether its last line had an end."""

    size: int
    encoding: Encoding
    is_whole: bool = True
    is_ended: bool = True


async def _fill(window: LineWindow, descriptor: int, name: str) -> _Passed:
    """Let the file pass by the window, a long one only as far as it is needed."""
    size = os.fstat(descriptor).st_size
    piece = os.read(descriptor, PIECE_BYTES)
    encoding = mark_of(piece)
    _demand_text(piece[:HEAD_BYTES], name)
    if encoding.codec.startswith("utf-16"):
        piece = _narrowed(descriptor, piece, size, name)
    else:
        piece = piece.removeprefix(encoding.mark)
    while piece:
        window.take(piece)
        if window.is_full and size > COUNTED_BYTES:
            return _Passed(size, encoding, is_whole=False)
        await anyio.lowlevel.checkpoint()
        piece = os.read(descriptor, PIECE_BYTES)
    return _Passed(size, encoding, is_ended=window.end())


def _demand_text(head: bytes, name: str) -> None:
    if media_type := picture_type(head):
        raise ToolError(f"{name} is a picture ({media_type}). See it with view_image.")
    if is_binary(head):
        raise ToolError(
            f"{name} is binary, not text (it begins with {head[:8].hex(' ')}). Look into it with the shell: file, xxd."
        )


def _narrowed(descriptor: int, head: bytes, size: int, name: str) -> bytes:
    """Return a file of two-byte characters as UTF-8: its line ends can't be seen otherwise."""
    if size > WIDE_BYTES:
        raise ToolError(f"{name} is UTF-16 and has {size:,} bytes. Convert it first: iconv -f UTF-16 -t UTF-8.")
    pieces = [head]
    while pieces[-1]:
        pieces.append(os.read(descriptor, PIECE_BYTES))
    return decode(b"".join(pieces)).text.encode(errors="replace")


def _output(window: LineWindow, first: int, passed: _Passed) -> ToolOutput:
    if not window.lines:
        if not window.total:
            return ToolOutput("[the file is empty]")
        raise ToolError(f"The file has {window.total:,} lines; offset {first:,} is behind its end.")
    has_crlf = all(line.content.endswith(b"\r") for line in window.lines[:-1] or window.lines)
    texts, codec = _decoded(window.lines, has_crlf)
    numbered = [f"{number:>6}\t{text}" for number, text in enumerate(texts, first)]
    notes = _where(window, first, passed)
    if has_crlf:
        notes.append("lines end with CRLF")
    if note := Encoding(codec).note() or passed.encoding.note():
        notes.append(note)
    return ToolOutput("\n".join([*numbered, *(f"[{note}]" for note in notes)]))


def _where(window: LineWindow, first: int, passed: _Passed) -> list[str]:
    """Say which lines these are, and how to read on."""
    last = first + len(window.lines) - 1
    on = f"read on with offset {last + 1}"
    if not passed.is_whole:
        return [f"lines {first:,} to {last:,}; the file goes on, {passed.size:,} bytes in all; {on}"]
    notes = [] if passed.is_ended else ["no newline at the end of the file"]
    if last < window.total:
        return [f"lines {first:,} to {last:,} of {window.total:,}; {on}", *notes]
    return [f"lines {first:,} to {last:,} of {window.total:,}", *notes] if first > 1 else notes


def _decoded(lines: list[WindowLine], has_crlf: bool) -> tuple[list[str], str]:
    """Return the lines as text, in UTF-8 if they are; a character that the cut went through is no reason."""
    try:
        texts = [_whole(line).decode() for line in lines]
        codec = "utf-8"
    except UnicodeDecodeError:
        texts = [line.content.decode("latin-1") for line in lines]
        codec = "latin-1"
    if has_crlf:
        texts = [text.removesuffix("\r") for text in texts]
    texts = [text.replace("\0", "␀") for text in texts]
    return [f"{t}… [{line.cut:,} bytes more]" if line.cut else t for t, line in zip(texts, lines, strict=True)], codec


def _whole(line: WindowLine) -> bytes:
    """Return a line without the piece of a character that the cut may have left at its end."""
    if not line.cut:
        return line.content
    end = len(line.content)
    while end > len(line.content) - 4 and line.content[end - 1] & 0xC0 == 0x80:
        end -= 1
    return line.content[: end - 1] if line.content[end - 1] >= 0xC0 else line.content
