"""Walks a folder tree without following symbolic links, and applies gitignore rules."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from hark.disk.gitignore import FILE_NAME, GIT, IgnoreScope, load_ignore_scope

MAX_DEPTH = 500  # stays below Python's recursion limit
UNLIMITED = 1_000_000

Name = TypeVar("Name", str, bytes)


class WalkFolder(Generic[Name]):
    """A folder visited by a walk, with its path as text or bytes. Read it once, then choose the subfolders to visit."""

    def __init__(self, path: Name, ignores: IgnoreScope, depth: int = 1) -> None:
        self.path = path
        self.depth = depth
        self.ignores = ignores  # those that apply inside the folder, once it is read
        self.names: set[Name] = set()

    def read(self, max_entries: int = UNLIMITED) -> list["os.DirEntry[Name]"]:
        """Return at most `max_entries` entries, and apply the folder's own gitignore rules from now on.

        Raises:
            OSError: The folder can't be read.
        """
        with os.scandir(self.path) as entries:
            scanned = list(islice(entries, max_entries))
        self.names = {entry.name for entry in scanned}
        git, rules = (os.fsdecode(GIT), os.fsdecode(FILE_NAME)) if isinstance(self.path, str) else (GIT, FILE_NAME)
        if git in self.names or rules in self.names:
            self.ignores = self.ignores.for_subfolder(self.path, is_repository=git in self.names)
        return scanned

    def subfolder(self, entry: "os.DirEntry[Name]") -> "WalkFolder[Name]":
        """Return the walk folder for a subfolder."""
        return WalkFolder(entry.path, self.ignores, self.depth + 1)


class TreeEntry(Struct, frozen=True):
    """An entry in a folder tree: its path, its depth (1 for entries in the start folder), and its type.

    `unlisted_count` is the number of further entries in the folder that aren't listed.
    """

    path: str
    depth: int
    is_folder: bool = False
    is_link: bool = False
    is_file: bool = False
    unlisted_count: int = 0


class TreeWalk(Struct, frozen=True, kw_only=True):
    """A walk in name order, with options for depth, hidden and ignored files, and entries per folder.

    At most `max_read` entries of a folder are read, and at most `max_listed` of them are listed.
    """

    max_depth: int = MAX_DEPTH
    include_hidden: bool = True
    include_ignored: bool = False
    max_listed: int = UNLIMITED
    max_read: int = UNLIMITED

    def walk(self, folder: Path) -> Iterator[TreeEntry]:
        """Yield everything in the folder, each subfolder before its contents. An unreadable folder counts as empty."""
        ignores = IgnoreScope() if self.include_ignored else load_ignore_scope(folder.parent)
        yield from self._walk_folder(WalkFolder(str(folder), ignores))

    def _walk_folder(self, folder: WalkFolder[str]) -> Iterator[TreeEntry]:
        listed = 0
        entries = self._sorted_entries(folder)
        for entry in entries:
            tree_entry = _to_tree_entry(entry, folder.depth)
            if self._is_excluded(entry, tree_entry.is_folder, folder):
                continue
            listed += 1
            if listed > self.max_listed:
                yield TreeEntry(folder.path, folder.depth, unlisted_count=len(entries) - listed + 1)
                return
            yield tree_entry
            if tree_entry.is_folder and folder.depth < self.max_depth:
                yield from self._walk_folder(folder.subfolder(entry))

    def _sorted_entries(self, folder: WalkFolder[str]) -> list["os.DirEntry[str]"]:
        try:
            return sorted(folder.read(self.max_read), key=lambda entry: os.fsencode(entry.name))
        except OSError:
            return []

    def _is_excluded(self, entry: "os.DirEntry[str]", is_folder: bool, folder: WalkFolder[str]) -> bool:
        if entry.name == ".git" or (not self.include_hidden and entry.name.startswith(".")):
            return True
        return not self.include_ignored and folder.ignores.is_ignored(entry.path, is_folder=is_folder)


def _to_tree_entry(entry: "os.DirEntry[str]", depth: int) -> TreeEntry:
    try:
        is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)
        return TreeEntry(entry.path, depth, is_folder, entry.is_symlink(), is_file)
    except OSError:
        return TreeEntry(entry.path, depth)
