"""The `read` tool: reads a text file or the text of a document, or a range of its lines."""

import os
from typing import Annotated

import anyio.lowlevel
from msgspec import Struct

from hark.processes.cookies import ProcessOwner, current_owner
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.documents import document_kind, read_document
from hark.tools.files.file_text import (
    HEAD_BYTES,
    Encoding,
    decode_text,
    detect_encoding,
    displayable,
    guess_encoding,
    is_binary,
)
from hark.tools.files.image_format import image_media_type
from hark.tools.files.last_reads import LastReads
from hark.tools.files.paths import FilePath, display_path, open_file, resolve_path

MAX_LINE_BYTES = 4_000
MAX_WINDOW_BYTES = 60_000


class TruncatedLine(Struct):
    """The first bytes of a line, without its line ending, and the number of bytes that were cut off."""

    content: bytes = b""
    cut: int = 0


class LineWindow:
    """Receives a file piece by piece, stores the lines starting with number `first`, and counts all lines.

    Stores `count` lines, or fewer if they are long. Lines are numbered from 1.
    """

    def __init__(self, first: int, count: int) -> None:
        self.lines: list[TruncatedLine] = []
        self.total = 0
        self._first = first
        self._last = first + count - 1
        self._bytes_left = MAX_WINDOW_BYTES
        self._line = TruncatedLine()
        self._is_line_open = False

    @property
    def is_full(self) -> bool:
        """Whether no further lines will be stored."""
        return self.total >= self._last

    def feed(self, piece: bytes) -> None:
        """Process the next piece of the file. The piece must not be empty."""
        ends = piece.count(b"\n")
        if self.is_full or self.total + ends + 1 < self._first:
            self.total += ends
            self._is_line_open = not piece.endswith(b"\n")
            return
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._extend_line(part)
            self._end_line()
        self._extend_line(rest)

    def finish(self) -> bool:
        """Process the end of the file. Return whether its last line ended with a newline."""
        is_ended = not self._is_line_open
        if self._is_line_open:
            self._end_line()
        return is_ended

    def _extend_line(self, part: bytes) -> None:
        if part:
            self._is_line_open = True
            room = MAX_LINE_BYTES - len(self._line.content)
            self._line.content += part[:room]
            self._line.cut += len(part[room:])

    def _end_line(self) -> None:
        self.total += 1
        if self._first <= self.total <= self._last:
            self._bytes_left -= len(self._line.content)
            self.lines.append(self._line)
            if self._bytes_left <= 0:
                self._last = self.total
        self._line = TruncatedLine()
        self._is_line_open = False


DEFAULT_LINES = 2_000
PIECE_BYTES = 65_536
MAX_COUNTED_BYTES = 64 * 1024 * 1024
MAX_UTF16_BYTES = 8 * 1024 * 1024


class ReadArguments(ToolArguments, frozen=True):
    """Read a text file. Each line is preceded by its number and a tab, which are not part of the file.

    Without a range you get the first 2000 lines, and a note on how to read more. PDFs, notebooks and docx, xlsx and
    pptx files are shown as text.
    """

    path: FilePath
    offset: Annotated[int, doc("The first line to read, counted from 1.", ge=1)] = 1
    limit: Annotated[int, doc(f"The maximum number of lines (default: {DEFAULT_LINES}).", ge=1)] = DEFAULT_LINES


class _ReadResult(Struct, frozen=True):
    """The file's size and encoding, whether all of it was read, and whether its last line has a newline."""

    size: int
    encoding: Encoding
    is_whole: bool = True
    is_ended: bool = True
    note: str = ""


class ReadTool:
    """The tool that reads files. Records which version of each file a session has seen."""

    spec = tool_spec(ReadArguments, "read")

    def __init__(self, reads: LastReads, owner: ProcessOwner | None = None) -> None:
        """Create the tool. `owner` gets the processes that read documents; the default is this process."""
        self._reads = reads
        self._owner = owner

    async def run(self, arguments: ReadArguments, context: CallContext) -> ToolOutput:
        """Return the requested lines. Safe to cancel at any time."""
        path = resolve_path(arguments.path, context.workspace)
        window = LineWindow(arguments.offset, arguments.limit)
        name = display_path(path, context.workspace)
        with open_file(path, context.workspace) as descriptor:
            piece = os.read(descriptor, PIECE_BYTES)
            if kind := document_kind(path, piece):
                result = await self._fill_from_document(window, descriptor, kind, name)
            else:
                result = await _fill_window(window, descriptor, piece, name)
        self._reads.record_version(context, path)
        return _format_output(window, arguments.offset, result)

    async def _fill_from_document(self, window: LineWindow, descriptor: int, kind: str, name: str) -> _ReadResult:
        def receive(text: bytes) -> bool:
            window.feed(text)
            return window.is_full

        problem = await read_document(self._owner or current_owner(), descriptor, kind, receive)
        window.finish()
        if problem and kind == "ipynb":  # not a valid notebook, but perhaps plain text
            os.lseek(descriptor, 0, os.SEEK_SET)
            return await _fill_window(window, descriptor, os.read(descriptor, PIECE_BYTES), name)
        if problem and not window.lines:
            raise ToolError(f"{name} can't be read as text: {problem}.")
        note = (
            "the text of a notebook; edit and patch change its JSON, which the shell shows" if kind == "ipynb" else ""
        )
        if problem:
            note = f"the rest can't be read as text: {problem}"
        size = os.fstat(descriptor).st_size
        return _ReadResult(size, Encoding(), is_whole=not window.is_full, note=note)


async def _fill_window(window: LineWindow, descriptor: int, piece: bytes, name: str) -> _ReadResult:
    """Read the file, which starts with `piece`, into the window. A long file is read until the window is full."""
    size = os.fstat(descriptor).st_size
    encoding = detect_encoding(piece)
    _require_text(piece[:HEAD_BYTES], name)
    if encoding.codec.startswith("utf-16"):
        piece = _convert_utf16(descriptor, piece, size, name)
    else:
        piece = piece.removeprefix(encoding.mark)
    while piece:
        window.feed(piece)
        if window.is_full and size > MAX_COUNTED_BYTES:
            return _ReadResult(size, encoding, is_whole=False)
        await anyio.lowlevel.checkpoint()
        piece = os.read(descriptor, PIECE_BYTES)
    return _ReadResult(size, encoding, is_ended=window.finish())


def _require_text(head: bytes, name: str) -> None:
    if media_type := image_media_type(head):
        raise ToolError(f"{name} is an image ({media_type}). Use view_image to see it.")
    if is_binary(head):
        raise ToolError(
            f"{name} is a binary file (it begins with {head[:8].hex(' ')}). Inspect it with the shell: file, xxd."
        )


def _convert_utf16(descriptor: int, head: bytes, size: int, name: str) -> bytes:
    """Return the content of a UTF-16 file as UTF-8, so that it can be split into lines."""
    if size > MAX_UTF16_BYTES:
        raise ToolError(f"{name} is UTF-16 and too big ({size:,} bytes). Convert it first: iconv -f UTF-16 -t UTF-8.")
    pieces = [head]
    while pieces[-1]:
        pieces.append(os.read(descriptor, PIECE_BYTES))
    return decode_text(b"".join(pieces)).text.encode(errors="replace")


def _format_output(window: LineWindow, first: int, result: _ReadResult) -> ToolOutput:
    if not window.lines:
        if not window.total:
            return ToolOutput("[the file is empty]")
        raise ToolError(f"The file has {window.total:,} lines; offset {first:,} is past its end.")
    has_crlf = all(line.content.endswith(b"\r") for line in window.lines[:-1] or window.lines)
    texts, encoding = _decode_lines(window.lines, has_crlf)
    numbered = [f"{number:>6}\t{text}" for number, text in enumerate(texts, first)]
    notes = _position_notes(window, first, result)
    if result.note:
        notes.append(result.note)
    if has_crlf:
        notes.append("lines end with CRLF")
    if note := encoding.describe() or result.encoding.describe():
        notes.append(note)
    return ToolOutput("\n".join([*numbered, *(f"[{note}]" for note in notes)]))


def _position_notes(window: LineWindow, first: int, result: _ReadResult) -> list[str]:
    """Return notes that state which lines are shown and how to read more."""
    last = first + len(window.lines) - 1
    hint = f"continue with offset {last + 1}"
    if not result.is_whole:
        return [f"lines {first:,} to {last:,}; the file continues, {result.size:,} bytes in total; {hint}"]
    notes = [] if result.is_ended else ["no newline at the end of the file"]
    if last < window.total:
        return [f"lines {first:,} to {last:,} of {window.total:,}; {hint}", *notes]
    return [f"lines {first:,} to {last:,} of {window.total:,}", *notes] if first > 1 else notes


def _decode_lines(lines: list[TruncatedLine], has_crlf: bool) -> tuple[list[str], Encoding]:
    """Decode the lines, and show invalid bytes. Ignores characters split by truncation."""
    contents = [_without_split_character(line) for line in lines]
    encoding = guess_encoding(b"\n".join(contents))
    if encoding.codec != "utf-8":
        contents = [line.content for line in lines]
    texts = [displayable(encoding.decode(content)) for content in contents]
    if has_crlf:
        texts = [text.removesuffix("\r") for text in texts]
    texts = [text.replace("\0", "␀") for text in texts]
    return [
        f"{t}… [{line.cut:,} more bytes]" if line.cut else t for t, line in zip(texts, lines, strict=True)
    ], encoding


def _without_split_character(line: TruncatedLine) -> bytes:
    """Return a line's bytes without an incomplete character that truncation left at the end."""
    if not line.cut:
        return line.content
    end = len(line.content)
    while end > len(line.content) - 4 and line.content[end - 1] & 0xC0 == 0x80:
        end -= 1
    return line.content[: end - 1] if line.content[end - 1] >= 0xC0 else line.content
