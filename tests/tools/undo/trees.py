"""Trees for the tests of undo: recorded byte by byte, and changed at random by sh and python."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH106, PTH108, PTH112, PTH114, PTH115, PTH211

import os
import random
import stat
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from hark.protocol.snapshots import StepName
from hark.tools.undo.scan import ScanLimits
from hark.tools.undo.undo import Undo

Tree = dict[bytes, tuple[str, int, bytes]]

NAMES = [b"a", b"b.txt", b"c d", b"new\nline", b"\xff\xfe", b"-rf", b"'quote'", b".env", "ü☃".encode(), b"deep"]


def tree_of(root: Path) -> Tree:
    """Return all names below, each with what it is, its mode and its content or target."""
    found: Tree = {}
    top = os.fsencode(root)
    waiting = [top]
    while waiting:
        with os.scandir(waiting.pop()) as items:
            for item in items:
                status = item.stat(follow_symlinks=False)
                mode = stat.S_IMODE(status.st_mode)
                name = item.path[len(top) + 1 :]
                if item.is_symlink():
                    found[name] = ("link", 0, os.readlink(item.path))
                elif item.is_dir():
                    found[name] = ("folder", mode, b"")
                    waiting.append(item.path)
                elif item.is_file():
                    found[name] = ("file", mode, Path(os.fsdecode(item.path)).read_bytes())
                else:
                    found[name] = ("other", mode, b"")
    return found


def sh(root: Path, command: str) -> None:
    """Run a command there."""
    subprocess.run(["sh", "-c", command], cwd=root, check=True, capture_output=True)


@asynccontextmanager
async def undoing(folder: Path, limits: ScanLimits | None = None) -> AsyncGenerator[Undo]:
    """Have an Undo on this folder, and close it."""
    undo = Undo(folder, limits)
    try:
        yield undo
    finally:
        await undo.close()


def step(number: int = 1, turn: str = "t1", session: str = "s") -> StepName:
    """Name a step."""
    return StepName(session, turn, number)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe with no reader is refused


class Chaos:
    """Changes a tree at random, the same way for the same seed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = os.fsencode(root)

    def act(self, count: int) -> None:
        """Do some of everything; what can't be done just now is left out."""
        acts = [self.write, self.write, self.append, self.truncate, self.remove, self.rename, self.rename, self.shell]
        acts += [self.make_folder, self.remove_folder, self.change_mode, self.link, self.hard_link, self.swap_kind]
        for _ in range(count):
            try:
                self.random.choice(acts)()
            except OSError:
                continue

    def some(self) -> bytes:
        """Return a path that is there, but not the root."""
        paths = [self.root + b"/" + name for name in sorted(tree_of(Path(os.fsdecode(self.root))))]
        return self.random.choice(paths) if paths else self.fresh()

    def fresh(self) -> bytes:
        """Return a path in a folder that is there; something may be there already."""
        tree = tree_of(Path(os.fsdecode(self.root)))
        folders = [b"", *sorted(name for name, (kind, _, _) in tree.items() if kind == "folder")]
        folder = self.random.choice(folders)
        return b"/".join(filter(None, (self.root, folder, self.random.choice(NAMES))))

    def content(self) -> bytes:
        size = self.random.choice((0, 1, 20, 3000, 300_000))
        return self.random.choice((b"line\r\n", b"text\n", b"\0\xff\x80", b"x")) * (size // 4) + self.random.randbytes(
            4
        )

    def write(self) -> None:
        with open(self.fresh(), "wb", opener=_without_waiting) as file:
            file.write(self.content())

    def append(self) -> None:
        with open(self.some(), "ab", opener=_without_waiting) as file:
            file.write(b"more")

    def truncate(self) -> None:
        os.truncate(self.some(), self.random.choice((0, 3)))

    def remove(self) -> None:
        os.unlink(self.some())

    def rename(self) -> None:
        os.rename(self.some(), self.fresh())

    def shell(self) -> None:
        command = self.random.choice(
            ('rm -rf -- "$0"', 'cp -a --remove-destination -- "$0" "$1"', 'mv -f -- "$0" "$1"', 'touch -- "$0"')
        )
        subprocess.run([b"sh", b"-c", command.encode(), self.some(), self.fresh()], check=False, capture_output=True)

    def make_folder(self) -> None:
        os.makedirs(self.fresh() + b"/" + self.random.choice(NAMES))

    def remove_folder(self) -> None:
        os.rmdir(self.some())

    def change_mode(self) -> None:
        path = self.some()
        if not os.path.islink(path):
            os.chmod(path, self.random.choice((0o755, 0o700, 0o777) if os.path.isdir(path) else (0o755, 0o600, 0o444)))

    def link(self) -> None:
        os.symlink(self.random.choice((b".", b"../nowhere", b"/etc", self.some())), self.fresh())

    def hard_link(self) -> None:
        os.link(self.some(), self.fresh())

    def swap_kind(self) -> None:
        path = self.some()
        subprocess.run([b"rm", b"-rf", b"--", path], check=True)
        match self.random.choice(("folder", "pipe", "link")):
            case "folder":
                os.mkdir(path)
            case "pipe":
                os.mkfifo(path)
            case _:
                os.symlink(b"a", path)
