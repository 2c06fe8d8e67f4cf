"""Process output: shown live, reduced to a terminal's text, limited in memory, and saved in full to files."""

import asyncio
import codecs
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from hark.disk.private_files import open_private
from hark.text.terminal_emulator import TerminalEmulator

# Slightly below the size that is shown in full, so that truncated output always has a file.
SMALL_OUTPUT_BYTES = 25_000
MAX_FILE_BYTES = 100_000_000
MAX_TOTAL_BYTES = 1_000_000_000
MAX_FILES = 300
MAX_HEAD_CHARACTERS = 15_000
MAX_TAIL_CHARACTERS = 15_000
MAX_SHOWN_CHARACTERS = 65_536
BATCH_SECONDS = 0.02
MAX_BUFFERED_CHARACTERS = 200_000
MAX_READ_CHARACTERS = 30_000


class OutputFile:
    """Decodes output and writes it to `path` once it exceeds `small_bytes`. Without a path, nothing is saved.

    A write error, such as a full disk, doesn't end the command. The file is then incomplete, and `note` says so.
    """

    def __init__(self, path: Path | None, small_bytes: int = SMALL_OUTPUT_BYTES) -> None:
        # Programs print in any encoding. Bytes that aren't UTF-8 must not end the call.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.path = path
        self._small_bytes = small_bytes
        self._unwritten = bytearray()
        self._written = 0
        self._descriptor: int | None = None
        self._problem = ""

    def add(self, chunk: bytes) -> str:
        """Add a chunk of bytes, which may end inside a character. Return the text that is now complete."""
        if self.path is not None and not self._problem:
            self._unwritten += chunk
            if self._descriptor is not None or len(self._unwritten) > self._small_bytes:
                self._write_to_file(self.path)
        # NUL is valid text, but terminals, databases and model APIs can't handle it.
        return self._decoder.decode(chunk).replace("\0", "␀")

    def close(self) -> str:
        """Close the file and return the remaining text. No more output may be added."""
        self._unwritten.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        return self._decoder.decode(b"", final=True)

    @property
    def note(self) -> str:
        """A sentence that says where the output was saved, or why not. Empty if there is no file."""
        if not self._written:
            return f"the output could not be saved to a file: {self._problem}" if self._problem else ""
        if self._problem:
            return f"the first {self._written:,} bytes are in {self.path}: {self._problem}"
        return f"the full output is in {self.path}"

    def format_omission(self, count: int) -> str:
        """Return a line for the place of `count` omitted characters, which also says where the full output is."""
        return f"\n[... {count:,} characters omitted{'; ' if self.note else ''}{self.note} ...]\n"

    def _write_to_file(self, path: Path) -> None:
        try:
            if self._descriptor is None:
                _delete_old_files(path.parent)
                self._descriptor = open_private(path, os.O_WRONLY | os.O_EXCL | os.O_APPEND)
            room = MAX_FILE_BYTES - self._written
            writable = bytes(self._unwritten[:room])
            while writable:
                count = os.write(self._descriptor, writable)
                self._written += count
                writable = writable[count:]
        except OSError as error:
            self._problem = error.strerror or str(error)
        else:
            if len(self._unwritten) > room:
                self._problem = f"at most {MAX_FILE_BYTES:,} bytes are saved"
        self._unwritten.clear()


def new_output_file(folder: Path | None, name_prefix: str, small_bytes: int = SMALL_OUTPUT_BYTES) -> OutputFile:
    """Return an output file with a new name that starts with `name_prefix`. Without a folder, nothing is written.

    The folder contains only such files and is private to its owner. The oldest files are deleted when there are too
    many.
    """
    if folder is None:
        return OutputFile(None)
    moment = time.strftime("%Y%m%d-%H%M%S")
    return OutputFile(folder / f"{name_prefix}-{moment}-{secrets.token_hex(3)}.txt", small_bytes)


def _delete_old_files(folder: Path) -> None:
    try:
        with os.scandir(folder) as entries:
            found = ((entry.stat(follow_symlinks=False), entry.path) for entry in entries if entry.is_file())
            files = sorted(found, key=lambda file: -file[0].st_mtime)
    except OSError:  # another process is deleting files too
        return
    total_bytes = 0
    for number, (stat, path) in enumerate(files):
        total_bytes += stat.st_size
        if number >= MAX_FILES or total_bytes > MAX_TOTAL_BYTES:
            Path(path).unlink(missing_ok=True)


class OutputBuffer:
    """Receives bytes and keeps only the first and last part of the text that a terminal would show.

    Memory is bounded. The live output and `file` get all output as it is. `close` also closes the file.
    """

    def __init__(self, show: Callable[[str], None], file: OutputFile | None = None) -> None:
        self._live_output = _LiveOutput(show)
        self._file = file or OutputFile(None)
        self._screen = TerminalEmulator()
        self._head = ""
        self._tail = ""
        self._omitted_count = 0

    def receive(self, chunk: bytes) -> None:
        """Receive a chunk of bytes, which may end inside a character."""
        self._add(self._file.add(chunk))

    def close(self) -> None:
        """Show the remaining output, and where the full output is if it was truncated. No more output may be added."""
        self._add(self._file.close())
        self._append(self._screen.flush())
        if self._live_output.is_truncated:  # an interrupted call has no other result than its live output
            self._live_output.write(f"\n[the output as a terminal shows it:]\n{self.text}")
        if self._omitted_count and self._file.note:
            self._live_output.write(f"\n[{self._file.note}]")
        self._live_output.flush()

    @property
    def text(self) -> str:
        """The output, or its beginning and end with a line between them that says how much was omitted."""
        omission = self._file.format_omission(self._omitted_count) if self._omitted_count else ""
        return self._head + omission + self._tail

    def _add(self, text: str) -> None:
        self._live_output.add(text)
        self._append(self._screen.feed(text))

    def _append(self, text: str) -> None:
        room = MAX_HEAD_CHARACTERS - len(self._head)
        self._head += text[:room]
        tail = self._tail + text[room:]
        self._tail = tail[-MAX_TAIL_CHARACTERS:]
        self._omitted_count += len(tail) - len(self._tail)


class _LiveOutput:
    """Shows text in batches. For long output, shows only the beginning, then the total length whenever it doubles."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._pending: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._total = 0
        self._next_note = 2 * MAX_SHOWN_CHARACTERS

    @property
    def is_truncated(self) -> bool:
        return self._total > MAX_SHOWN_CHARACTERS

    def add(self, text: str) -> None:
        room = MAX_SHOWN_CHARACTERS - self._total
        self._total += len(text)
        if room > 0 and text:
            self.write(text[:room])
        if self._total >= self._next_note:
            self.write(f"\n[output continues, {self._total:,} characters so far]")
            while self._next_note <= self._total:
                self._next_note *= 2

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            self._show("".join(self._pending))
            self._pending.clear()

    def write(self, text: str) -> None:
        self._pending.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)


class UnreadOutput:
    """Receives bytes and buffers a limited amount of unread text, as a terminal would show it.

    The full output is saved in `file`.
    """

    def __init__(self, file: OutputFile) -> None:
        self.file = file
        self._screen = TerminalEmulator()
        self._unread = ""
        self._omitted_count = 0
        self._changed = asyncio.Event()

    def receive(self, chunk: bytes) -> None:
        """Receive a chunk of bytes, which may end inside a character."""
        self._add(self.file.add(chunk))

    def close(self) -> None:
        """Flush the remaining text and close the file. No more output may be added."""
        self._add(self.file.close())

    @property
    def unread_count(self) -> int:
        """The number of characters that haven't been read yet."""
        return self._omitted_count + len(self.peek())

    async def wait_for_more(self) -> None:
        """Wait until more output arrives. Safe to cancel."""
        await self._changed.wait()

    def peek(self) -> str:
        """Return the unread text that is still buffered, without marking it as read."""
        return self._unread + self._screen.text

    def read(self) -> str:
        """Return the unread text and mark it as read. Very long text is reduced to its beginning and end."""
        text, count = self.peek(), self.unread_count
        self._screen.flush()
        self._unread, self._omitted_count = "", 0
        if count <= MAX_READ_CHARACTERS:
            return text
        half = MAX_READ_CHARACTERS // 2
        return text[:half] + self.file.format_omission(count - 2 * half) + text[-half:]

    def _add(self, output: str) -> None:
        text = self._unread + self._screen.feed(output)
        self._unread = text[-MAX_BUFFERED_CHARACTERS:]
        self._omitted_count += len(text) - len(self._unread)
        if output:
            self._changed.set()
            self._changed = asyncio.Event()
