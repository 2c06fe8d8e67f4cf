"""Runs `hark` in a pseudo-terminal, to type into it, read its screen, resize it and close it."""

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

from tests.surfaces.terminal.screen_emulator import ScreenEmulator
from tests.waiting import until

PASTE = b"\x1b[200~%s\x1b[201~"
TIMEOUT_SECONDS = 40.0  # below the time limit of a test


class PseudoTerminal:
    """A pseudo-terminal with a running program."""

    def __init__(
        self,
        master: int,
        slave: int,
        process: asyncio.subprocess.Process,
        screen: ScreenEmulator,
        original_settings: list[object],
    ) -> None:
        """Attach to a running program. `original_settings` are the settings before the program changed them."""
        self.process = process
        self.screen = screen
        self.output = bytearray()
        self.original_settings = original_settings
        self._master = master
        self._slave = slave
        self._output_arrived = asyncio.Event()
        self._is_paused = False
        self.is_open = True
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def text(self) -> str:
        """The text on the screen."""
        return self.screen.text

    @property
    def settings(self) -> list[object]:
        """The terminal's current settings, as `stty -a` shows them."""
        return list(termios.tcgetattr(self._slave))

    def type(self, keys: str | bytes) -> float:
        """Type keys and return the time at which they were written."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)
        return time.perf_counter()

    async def type_all(self, keys: bytes) -> None:
        """Type keys in chunks, for input that exceeds the terminal's buffer."""
        while keys:
            with _nonblocking(self._master):
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

    def pause_output(self) -> None:
        """Stop reading the program's output."""
        self._is_paused = True
        asyncio.get_running_loop().remove_reader(self._master)

    def resume_output(self) -> None:
        """Resume reading the program's output."""
        self._is_paused = False
        asyncio.get_running_loop().add_reader(self._master, self._read)

    async def until(self, expected: str | Callable[[], bool], seconds: float = TIMEOUT_SECONDS) -> float:
        """Wait until the text is on the screen or the condition is true. Return the time at which that happened."""
        is_met = expected if callable(expected) else lambda: expected in self.text
        await until(is_met, seconds=seconds, changed=self._output_arrived, shows=lambda: (expected, self.text))
        return time.perf_counter()

    async def wait_for_exit(self, seconds: float = TIMEOUT_SECONDS) -> int:
        """Wait until the program exits and return its exit code."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    def close(self) -> None:
        """Close the terminal window."""
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            os.close(self._slave)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.output += data
        self.screen.feed(data)
        self._output_arrived.set()


class _nonblocking:  # noqa: N801 - reads like a function
    def __init__(self, file: int) -> None:
        self._file = file

    def __enter__(self) -> None:
        os.set_blocking(self._file, False)

    def __exit__(self, *_: object) -> None:
        os.set_blocking(self._file, True)


def _set_controlling_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@asynccontextmanager
async def open_pseudo_terminal(
    environment: Mapping[str, str],
    arguments: Sequence[str] = (),
    *,
    size: tuple[int, int] = (80, 24),
    command: Sequence[str] = (sys.executable, "-m", "hark.cli.main"),
    directory: str | None = None,
) -> AsyncGenerator[PseudoTerminal]:
    """Run `hark` in a pseudo-terminal. The program is killed at the end if it is still running."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    original_settings = list[object](termios.tcgetattr(slave))
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={"TERM": "xterm-256color", **environment},
        cwd=directory,
        start_new_session=True,
        preexec_fn=_set_controlling_terminal,
    )
    pseudo_terminal = PseudoTerminal(master, slave, process, ScreenEmulator(*size), original_settings)
    try:
        yield pseudo_terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        pseudo_terminal.close()
