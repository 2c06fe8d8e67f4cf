"""The `read` tool: reads a text file or the text of a document, or a range of its lines."""

import codecs
import os
from typing import Annotated

import anyio.lowlevel

from hark.processes.cookies import ProcessOwner, current_owner
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.documents import document_kind, read_document
from hark.tools.files.file_text import HEAD_BYTES, decode_text, detect_encoding, displayable, guess_encoding, is_binary
from hark.tools.files.image_format import image_media_type
from hark.tools.files.last_reads import LastReads
from hark.tools.files.paths import FilePath, display_path, open_file, resolve_path

MAX_LINE_BYTES = 4_000
MAX_WINDOW_BYTES = 60_000


class LineWindow:
    """Receives a file piece by piece, stores the lines starting with number `first`, and counts all lines.

    Stores `count` lines, or fewer if they are long. Lines are numbered from 1.
    """

    def __init__(self, first: int, count: int) -> None:
        self.lines: list[tuple[bytes, int]] = []  # the first bytes of each line, and how many were cut off
        self.total = 0
        self.first = first
        self._last = first + count - 1
        self._bytes_left = MAX_WINDOW_BYTES
        self._line = b""
        self._cut = 0
        self._is_line_open = False

    @property
    def is_full(self) -> bool:
        """Whether no further lines will be stored."""
        return self.total >= self._last

    def format_position(self, unread_size: int = 0) -> str:
        """Return a note that states which lines are stored and how to read more, or "" if these are all lines.

        `unread_size` is the size of a file that was not read to its end.
        """
        last = self.first + len(self.lines) - 1
        is_end = last == self.total and not unread_size
        if is_end and self.first == 1:
            return ""
        total = f"; the file continues, {unread_size:,} bytes in total" if unread_size else f" of {self.total:,}"
        return f"lines {self.first:,} to {last:,}{total}{'' if is_end else f'; continue with offset {last + 1}'}"

    def feed(self, piece: bytes) -> bool:
        """Process the next piece of the file, which must not be empty. Return whether the window is full."""
        ends = piece.count(b"\n")
        if self.is_full or self.total + ends + 1 < self.first:
            self.total += ends
            self._is_line_open = not piece.endswith(b"\n")
            return self.is_full
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._extend_line(part)
            self._end_line()
        self._extend_line(rest)
        return self.is_full

    def finish(self) -> bool:
        """Process the end of the file. Return whether its last line ended with a newline."""
        if self._is_line_open:
            self._end_line()
            return False
        return True

    def _extend_line(self, part: bytes) -> None:
        if part:
            self._is_line_open = True
            room = MAX_LINE_BYTES - len(self._line)
            self._line += part[:room]
            self._cut += len(part[room:])

    def _end_line(self) -> None:
        self.total += 1
        if self.first <= self.total <= self._last:
            # Don't show a part of a character.
            end = codecs.utf_8_decode(self._line, "surrogateescape")[1] if self._cut else len(self._line)
            self.lines.append((self._line[:end], self._cut + len(self._line) - end))
            self._bytes_left -= end
            if self._bytes_left <= 0:
                self._last = self.total
        self._line, self._cut, self._is_line_open = b"", 0, False


DEFAULT_LINES = 2_000
PIECE_BYTES = 65_536
MAX_COUNTED_BYTES = 64 * 1024 * 1024
MAX_UTF16_BYTES = 8 * 1024 * 1024
NOTEBOOK_NOTE = "the text of a notebook; edit and patch change its JSON, which the shell shows"


class ReadArguments(ToolArguments, frozen=True):
    """Read a text file. Each line is preceded by its number and a tab, which are not part of the file.

    Without a range you get the first 2000 lines, and a note on how to read more. PDFs, notebooks and docx, xlsx and
    pptx files are shown as text.
    """

    path: FilePath
    offset: Annotated[int, doc("The first line to read, counted from 1.", ge=1)] = 1
    limit: Annotated[int, doc(f"The maximum number of lines (default: {DEFAULT_LINES}).", ge=1)] = DEFAULT_LINES


_Content = tuple[LineWindow, list[str]]  # the lines, and notes about them


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
        name = display_path(path, context.workspace)
        with open_file(path, context.workspace) as descriptor:
            piece = os.read(descriptor, PIECE_BYTES)
            if kind := document_kind(path, piece):
                window, notes = await self._read_document(arguments, descriptor, kind, name)
            else:
                window, notes = await _read_text(arguments, descriptor, piece, name)
        self._reads.record_version(context, path)
        return _format_output(window, notes)

    async def _read_document(self, arguments: ReadArguments, descriptor: int, kind: str, name: str) -> _Content:
        window = LineWindow(arguments.offset, arguments.limit)
        problem = await read_document(self._owner or current_owner(), descriptor, kind, window.feed)
        window.finish()
        note = NOTEBOOK_NOTE if kind == "ipynb" else ""
        if window.is_full:
            return window, [window.format_position(os.fstat(descriptor).st_size), note]
        if problem and kind == "ipynb":  # not a valid notebook, but perhaps plain text
            os.lseek(descriptor, 0, os.SEEK_SET)
            return await _read_text(arguments, descriptor, os.read(descriptor, PIECE_BYTES), name)
        if problem and not window.lines:
            raise ToolError(f"{name} can't be read as text: {problem}.")
        return window, [window.format_position(), f"the rest can't be read as text: {problem}" if problem else note]


async def _read_text(arguments: ReadArguments, descriptor: int, piece: bytes, name: str) -> _Content:
    """Read a text file that starts with `piece`. A long file is read until the window is full."""
    window = LineWindow(arguments.offset, arguments.limit)
    size = os.fstat(descriptor).st_size
    encoding = detect_encoding(piece)
    if media_type := image_media_type(piece[:HEAD_BYTES]):
        raise ToolError(f"{name} is an image ({media_type}). Use view_image to see it.")
    if is_binary(piece):
        start = piece[:8].hex(" ")
        raise ToolError(f"{name} is a binary file (it begins with {start}). Inspect it with the shell: file, xxd.")
    if encoding.codec.startswith("utf-16"):  # convert it to UTF-8, which can be split into lines
        if size > MAX_UTF16_BYTES:
            raise ToolError(f"{name} is UTF-16 and too big ({size:,} bytes). Convert it: iconv -f UTF-16 -t UTF-8.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            piece = decode_text(piece + file.read()).text.encode(errors="replace")
    piece = piece.removeprefix(encoding.mark)
    while piece:
        if window.feed(piece) and size > MAX_COUNTED_BYTES:
            return window, [window.format_position(size), encoding.describe()]
        await anyio.lowlevel.checkpoint()
        piece = os.read(descriptor, PIECE_BYTES)
    end_note = "" if window.finish() else "no newline at the end of the file"
    return window, [window.format_position(), end_note, encoding.describe()]


def _format_output(window: LineWindow, notes: list[str]) -> ToolOutput:
    if not window.lines:
        if not window.total:
            return ToolOutput("[the file is empty]")
        raise ToolError(f"The file has {window.total:,} lines; offset {window.first:,} is past its end.")
    encoding = guess_encoding(b"\n".join(line for line, _ in window.lines))
    texts = [displayable(encoding.decode(line)).replace("\0", "␀") for line, _ in window.lines]
    if all(text.endswith("\r") for text in texts[:-1] or texts):
        texts = [text.removesuffix("\r") for text in texts]
        notes.append("lines end with CRLF")
    numbered = [
        f"{number:>6}\t{text}{f'… [{cut:,} more bytes]' if cut else ''}"
        for number, (text, (_, cut)) in enumerate(zip(texts, window.lines, strict=True), window.first)
    ]
    return ToolOutput("\n".join([*numbered, *(f"[{note}]" for note in (*notes, encoding.describe()) if note)]))
