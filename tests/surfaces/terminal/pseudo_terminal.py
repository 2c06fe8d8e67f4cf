"""`hark` in a pseudo-terminal: typed at, looked at, resized, closed."""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from tests.surfaces.terminal.screen_emulator import Screen
from tests.waiting import until

PASTE = b"\x1b[200~%s\x1b[201~"
LOOK_SECONDS = 60.0


class Terminal:
    """A terminal with a program in it."""

    def __init__(
        self, master: int, other_end: int, process: asyncio.subprocess.Process, screen: Screen, usual: list[object]
    ) -> None:
        """`usual` are the terminal's settings from before the program, which changes them as soon as it starts."""
        self.process = process
        self.screen = screen
        self.written = bytearray()
        self.usual = usual
        self._master = master
        self._other_end = other_end
        self._more = asyncio.Event()
        self._is_stalled = False
        self.is_open = True
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self.screen.text

    @property
    def modes(self) -> list[object]:
        """The terminal's settings, as `stty -a` would show them."""
        return list(termios.tcgetattr(self._other_end))

    def type(self, keys: str | bytes) -> float:
        """Type; return when."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)
        return time.perf_counter()

    async def type_all(self, keys: bytes) -> None:
        """Type more than a terminal holds at once."""
        while keys:
            with _unblocked(self._master):
                try:
                    keys = keys[os.write(self._master, keys[:1024]) :]
                    await asyncio.sleep(0)
                except BlockingIOError:
                    await asyncio.sleep(0.001)

    async def paste(self, text: str) -> None:
        await self.type_all(PASTE % text.replace("\n", "\r").encode())

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(columns, rows)

    def stall(self) -> None:
        """Take nothing any more of what the program writes."""
        self._is_stalled = True
        asyncio.get_running_loop().remove_reader(self._master)

    def go_on(self) -> None:
        """Take it again."""
        self._is_stalled = False
        asyncio.get_running_loop().add_reader(self._master, self._read)

    async def until(self, words: str | Callable[[], bool], seconds: float = LOOK_SECONDS) -> float:
        """Return when these words are on the screen, or this is true; when that was."""
        is_there = words if callable(words) else lambda: words in self.text
        await until(is_there, seconds=seconds, changed=self._more, shows=lambda: (words, self.text))
        return time.perf_counter()

    async def left(self, seconds: float = LOOK_SECONDS) -> int:
        """Return the exit code when the program is gone."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    def close(self) -> None:
        """Close the window."""
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            os.close(self._other_end)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.written += data
        self.screen.feed(data)
        self._more.set()


class _unblocked:  # noqa: N801 - reads as a verb
    def __init__(self, file: int) -> None:
        self._file = file

    def __enter__(self) -> None:
        os.set_blocking(self._file, False)

    def __exit__(self, *_: object) -> None:
        os.set_blocking(self._file, True)


def _be_controlled() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@asynccontextmanager
async def terminal(
    environment: Mapping[str, str],
    words: Sequence[str] = (),
    *,
    size: tuple[int, int] = (80, 24),
    command: Sequence[str] = (sys.executable, "-m", "hark.cli.main"),
    directory: str | None = None,
) -> AsyncGenerator[Terminal]:
    """Run `hark` in a terminal; at the end it is killed if it is still there."""
    master, other_end = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    usual = list[object](termios.tcgetattr(other_end))
    process = await asyncio.create_subprocess_exec(
        *command,
        *words,
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env={"TERM": "xterm-256color", **environment},
        cwd=directory,
        start_new_session=True,
        preexec_fn=_be_controlled,
    )
    one = Terminal(master, other_end, process, Screen(*size), usual)
    try:
        yield one
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        one.close()
