"""File trees for undo tests, recorded exactly and changed at random by shell commands and Python."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH106, PTH108, PTH112, PTH114, PTH115, PTH211

import os
import random
import stat
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from hark.protocol.snapshots import StepId
from hark.tools.undo.scan import ScanLimits
from hark.tools.undo.undo import Undo

Tree = dict[bytes, tuple[str, int, bytes]]

NAMES = [b"a", b"b.txt", b"c d", b"new\nline", b"\xff\xfe", b"-rf", b"'quote'", b".env", "ü☃".encode(), b"deep"]


def read_tree(root: Path) -> Tree:
    """Return all paths below the root, each with its file type, its mode, and its content or link target."""
    found: Tree = {}
    top = os.fsencode(root)
    pending = [top]
    while pending:
        with os.scandir(pending.pop()) as items:
            for item in items:
                status = item.stat(follow_symlinks=False)
                mode = stat.S_IMODE(status.st_mode)
                name = item.path[len(top) + 1 :]
                if item.is_symlink():
                    found[name] = ("link", 0, os.readlink(item.path))
                elif item.is_dir():
                    found[name] = ("folder", mode, b"")
                    pending.append(item.path)
                elif item.is_file():
                    found[name] = ("file", mode, Path(os.fsdecode(item.path)).read_bytes())
                else:
                    found[name] = ("other", mode, b"")
    return found


def run_shell(root: Path, command: str) -> None:
    """Run a shell command in the folder `root`."""
    subprocess.run(["sh", "-c", command], cwd=root, check=True, capture_output=True)


def wait_for_file_clock(folder: Path) -> None:
    """Wait until the clock of file times, which ticks every few milliseconds, has passed the present moment."""
    now, probe = time.time_ns(), folder / "clock"
    while not probe.exists() or probe.stat().st_ctime_ns <= now:
        probe.touch()


@asynccontextmanager
async def open_undo(folder: Path, limits: ScanLimits | None = None) -> AsyncGenerator[Undo]:
    """Open an Undo that stores its data in this folder, and close it at the end."""
    undo = Undo(folder, limits)
    try:
        yield undo
    finally:
        await undo.close()


def step_id(number: int = 1, turn: str = "t1", session: str = "s") -> StepId:
    """Return the id of a step."""
    return StepId(session, turn, number)


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # opening a pipe without a reader fails


class RandomChanges:
    """Changes a tree at random. The same seed produces the same changes."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = os.fsencode(root)

    def make_changes(self, count: int) -> None:
        """Make random changes. Changes that are impossible at the moment are skipped."""
        changes = [
            self.write,
            self.write,
            self.append,
            self.truncate,
            self.remove,
            self.rename,
            self.rename,
            self.shell,
        ]
        changes += [self.make_folder, self.remove_folder, self.change_mode, self.symlink, self.hard_link, self.replace]
        for _ in range(count):
            try:
                self.random.choice(changes)()
            except OSError:
                continue

    def existing_path(self) -> bytes:
        """Return a random existing path, but not the root."""
        paths = [self.root + b"/" + name for name in sorted(read_tree(Path(os.fsdecode(self.root))))]
        return self.random.choice(paths) if paths else self.random_path()

    def random_path(self) -> bytes:
        """Return a random path in an existing folder. The path may exist already."""
        tree = read_tree(Path(os.fsdecode(self.root)))
        folders = [b"", *sorted(name for name, (kind, _, _) in tree.items() if kind == "folder")]
        folder = self.random.choice(folders)
        return b"/".join(filter(None, (self.root, folder, self.random.choice(NAMES))))

    def random_content(self) -> bytes:
        size = self.random.choice((0, 1, 20, 3000, 300_000))
        return self.random.choice((b"line\r\n", b"text\n", b"\0\xff\x80", b"x")) * (size // 4) + self.random.randbytes(
            4
        )

    def write(self) -> None:
        with open(self.random_path(), "wb", opener=_open_nonblocking) as file:
            file.write(self.random_content())

    def append(self) -> None:
        with open(self.existing_path(), "ab", opener=_open_nonblocking) as file:
            file.write(b"more")

    def truncate(self) -> None:
        os.truncate(self.existing_path(), self.random.choice((0, 3)))

    def remove(self) -> None:
        os.unlink(self.existing_path())

    def rename(self) -> None:
        os.rename(self.existing_path(), self.random_path())

    def shell(self) -> None:
        command = self.random.choice(
            ('rm -rf -- "$0"', 'cp -a --remove-destination -- "$0" "$1"', 'mv -f -- "$0" "$1"', 'touch -- "$0"')
        )
        subprocess.run(
            [b"sh", b"-c", command.encode(), self.existing_path(), self.random_path()], check=False, capture_output=True
        )

    def make_folder(self) -> None:
        os.makedirs(self.random_path() + b"/" + self.random.choice(NAMES))

    def remove_folder(self) -> None:
        os.rmdir(self.existing_path())

    def change_mode(self) -> None:
        path = self.existing_path()
        if not os.path.islink(path):
            os.chmod(path, self.random.choice((0o755, 0o700, 0o777) if os.path.isdir(path) else (0o755, 0o600, 0o444)))

    def symlink(self) -> None:
        os.symlink(self.random.choice((b".", b"../nowhere", b"/etc", self.existing_path())), self.random_path())

    def hard_link(self) -> None:
        os.link(self.existing_path(), self.random_path())

    def replace(self) -> None:
        path = self.existing_path()
        subprocess.run([b"rm", b"-rf", b"--", path], check=True)
        match self.random.choice(("folder", "pipe", "link")):
            case "folder":
                os.mkdir(path)
            case "pipe":
                os.mkfifo(path)
            case _:
                os.symlink(b"a", path)
