"""The operations of a recording: changes to a file system, syncs, and the marks of the scenario."""

from dataclasses import dataclass
from typing import Any

ROOT = 0  # the inode of the recorded folder


@dataclass(frozen=True, slots=True)
class Create:
    """A new file, folder or symbolic link, and its directory entry."""

    folder: int
    name: bytes
    inode: int
    mode: int  # as in `st_mode`
    target: bytes = b""  # of a symbolic link


@dataclass(frozen=True, slots=True)
class Link:
    """A further directory entry of a file."""

    folder: int
    name: bytes
    inode: int


@dataclass(frozen=True, slots=True)
class Remove:
    """The removal of a directory entry."""

    folder: int
    name: bytes


@dataclass(frozen=True, slots=True)
class Rename:
    """A rename of an inode, which replaces the target. With `is_exchange`, the target gets the source's name."""

    source: int
    source_name: bytes
    folder: int
    name: bytes
    inode: int
    exchanged: int | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that were written to a file."""

    inode: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """A new size of a file."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """New permissions of a file or folder."""

    inode: int
    permissions: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A completed fsync. It covers the operations before index `start`. Without an inode it covers all files."""

    inode: int | None
    start: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A note of the scenario, such as the begin or the acknowledgement of an action."""

    content: dict[str, Any]


EntryOperation = Create | Link | Remove | Rename
DataOperation = Write | Truncate | ChangeMode
Change = EntryOperation | DataOperation
Operation = Change | Sync | Mark
