"""A walk through a folder tree that follows no links and knows what git ignores."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from hark.disk.gitignore import FILE_NAME, GIT, Ignores, ignores_of

DEEPEST = 500  # what Python can go down itself
MANY = 1_000_000

Name = TypeVar("Name", str, bytes)


class WalkFolder(Generic[Name]):
    """A folder of a walk, its path text or bytes. Read it once, then choose the subfolders to descend into."""

    def __init__(self, path: Name, ignores: Ignores, depth: int = 1) -> None:
        self.path = path
        self.depth = depth
        self.ignores = ignores  # those that apply in it, once it is read
        self.names: set[Name] = set()

    def read(self, most: int = MANY) -> list["os.DirEntry[Name]"]:
        """Return the entries, at most so many, with the folder's own gitignore rules applied from now on.

        Raises:
            OSError: The folder can't be read.
        """
        with os.scandir(self.path) as entries:
            listed = list(islice(entries, most))
        self.names = {entry.name for entry in listed}
        git, rules = (os.fsdecode(GIT), os.fsdecode(FILE_NAME)) if isinstance(self.path, str) else (GIT, FILE_NAME)
        if git in self.names or rules in self.names:
            self.ignores = self.ignores.below(self.path, is_repository=git in self.names)
        return listed

    def below(self, entry: "os.DirEntry[Name]") -> "WalkFolder[Name]":
        """Return a subfolder, to be read."""
        return WalkFolder(entry.path, self.ignores, self.depth + 1)


class TreeEntry(Struct, frozen=True):
    """Something in a folder: its path, how deep it is (1 for the folder's own), and what it is.

    `left_out`: how many more entries the folder has that are not listed.
    """

    path: str
    depth: int
    is_folder: bool = False
    is_link: bool = False
    is_file: bool = False
    left_out: int = 0


class TreeWalk(Struct, frozen=True, kw_only=True):
    """A walk in the order of names: how deep, with hidden and ignored files or not, how many entries of each folder.

    At most `most_read` entries of a folder are read, and `most_of_folder` of them listed.
    """

    depth: int = DEEPEST
    hidden: bool = True
    ignored: bool = False
    most_of_folder: int = MANY
    most_read: int = MANY

    def through(self, folder: Path) -> Iterator[TreeEntry]:
        """Yield everything in the folder, each folder before its contents. A folder that can't be read is empty."""
        ignores = Ignores() if self.ignored else ignores_of(folder.parent)
        yield from self._below(WalkFolder(str(folder), ignores))

    def _below(self, folder: WalkFolder[str]) -> Iterator[TreeEntry]:
        listed = 0
        entries = self._entries(folder)
        for entry in entries:
            found = _found(entry, folder.depth)
            if self._is_left_out(entry, found.is_folder, folder):
                continue
            listed += 1
            if listed > self.most_of_folder:
                yield TreeEntry(folder.path, folder.depth, left_out=len(entries) - listed + 1)
                return
            yield found
            if found.is_folder and folder.depth < self.depth:
                yield from self._below(folder.below(entry))

    def _entries(self, folder: WalkFolder[str]) -> list["os.DirEntry[str]"]:
        try:
            return sorted(folder.read(self.most_read), key=lambda entry: os.fsencode(entry.name))
        except OSError:
            return []

    def _is_left_out(self, entry: "os.DirEntry[str]", is_folder: bool, folder: WalkFolder[str]) -> bool:
        if entry.name == ".git" or (not self.hidden and entry.name.startswith(".")):
            return True
        return not self.ignored and folder.ignores.is_ignored(entry.path, is_folder=is_folder)


def _found(entry: "os.DirEntry[str]", depth: int) -> TreeEntry:
    try:
        is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)
        return TreeEntry(entry.path, depth, is_folder, entry.is_symlink(), is_file)
    except OSError:
        return TreeEntry(entry.path, depth)
