"""Goes through a folder's files in order, leaving out what git ignores."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from hark.tools.files.gitignore import FILE_NAME, Ignores, ignores_of

GIT = ".git"
DEEPEST = 500  # what Python can go down itself
MANY = 1_000_000


class TreeEntry(Struct, frozen=True):
    """Something in a folder: its path, how deep it is (1 for the folder's own), and what it is.

    `left_out`: how many more there are beside it that are not told.
    """

    path: str
    depth: int
    is_folder: bool = False
    is_link: bool = False
    is_file: bool = False
    left_out: int = 0


class TreeWalk:
    """How to go: how deep, with hidden files or not, with ignored ones or not, and how many of each folder.

    At most `most_read` of a folder are looked at, and so many of them told.
    """

    def __init__(
        self,
        *,
        depth: int = DEEPEST,
        hidden: bool = True,
        ignored: bool = False,
        most_of_folder: int = MANY,
        most_read: int = MANY,
    ) -> None:
        self._depth = depth
        self._hidden = hidden
        self._ignored = ignored
        self._most_told = most_of_folder
        self._most_read = most_read

    def through(self, folder: Path) -> Iterator[TreeEntry]:
        """Yield all that is in the folder, each folder before what is in it, sorted by name; links are not followed.

        What can't be read is empty.
        """
        yield from self._below(str(folder), 1, Ignores() if self._ignored else ignores_of(folder.parent))

    def _below(self, folder: str, depth: int, ignores: Ignores) -> Iterator[TreeEntry]:
        told = 0
        entries = self._entries(folder)
        if not self._ignored and any(entry.name in (GIT, FILE_NAME) for entry in entries):
            ignores = ignores.below(folder)
        for entry in entries:
            is_folder = _is_folder(entry)
            if self._is_left_out(entry, is_folder, ignores):
                continue
            told += 1
            if told > self._most_told:
                yield TreeEntry(folder, depth, left_out=len(entries) - told + 1)
                return
            yield _found(entry, is_folder, depth)
            if is_folder and depth < self._depth:
                yield from self._below(entry.path, depth + 1, ignores)

    def _entries(self, folder: str) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as entries:
                return sorted(islice(entries, self._most_read), key=lambda entry: os.fsencode(entry.name))
        except OSError:
            return []

    def _is_left_out(self, entry: "os.DirEntry[str]", is_folder: bool, ignores: Ignores) -> bool:
        if entry.name == GIT or (not self._hidden and entry.name.startswith(".")):
            return True
        return ignores.is_ignored(entry.path, is_folder)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _found(entry: "os.DirEntry[str]", is_folder: bool, depth: int) -> TreeEntry:
    try:
        is_file = entry.is_file(follow_symlinks=False)
        return TreeEntry(entry.path, depth, is_folder, entry.is_symlink(), is_file)
    except OSError:
        return TreeEntry(entry.path, depth, is_folder)
