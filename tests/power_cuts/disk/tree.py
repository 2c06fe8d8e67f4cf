"""An in-memory folder tree of inodes and directory entries. Recorded operations modify it."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.power_cuts.disk.operations import ROOT, Change, ChangeMode, Create, Link, Remove, Rename, Truncate, Write

FOLDER_MODE = stat.S_IFDIR | 0o755


@dataclass(slots=True)
class Node:
    """An inode: a file with its content, a folder with its entries, or a symbolic link with its target."""

    mode: int
    content: bytearray = field(default_factory=bytearray)
    entries: dict[bytes, int] = field(default_factory=dict[bytes, int])
    target: bytes = b""

    def copy(self) -> "Node":
        return Node(self.mode, bytearray(self.content), dict(self.entries), self.target)


class Tree:
    """The inodes by number. An inode without a directory entry is lost."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {ROOT: Node(FOLDER_MODE)}

    def copy(self) -> "Tree":
        tree = Tree()
        tree.nodes = {inode: node.copy() for inode, node in self.nodes.items()}
        return tree

    def find(self, parts: tuple[bytes, ...]) -> int | None:
        """Return the inode of a path, given as names below the root."""
        inode: int | None = ROOT
        for name in parts:
            inode = self.nodes[inode].entries.get(name) if inode is not None else None
        return inode

    def apply(self, change: Change) -> None:
        """Change the tree. The inodes of created files may exist already."""
        nodes = self.nodes
        match change:
            case Create(folder, name, inode, mode, target):
                nodes.setdefault(inode, Node(mode, target=target))
                nodes[folder].entries[name] = inode
            case Link(folder, name, inode):
                nodes[folder].entries[name] = inode
            case Remove(folder, name):
                nodes[folder].entries.pop(name, None)
            case Rename():
                _remove_entry(nodes[change.source], change.source_name, change.inode)
                nodes[change.folder].entries[change.name] = change.inode
                if change.exchanged is not None:
                    nodes[change.source].entries[change.source_name] = change.exchanged
            case Write(inode, offset, data):
                content = nodes[inode].content
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
            case Truncate(inode, size):
                content = nodes[inode].content
                del content[size:]
                content.extend(bytes(size - len(content)))
            case ChangeMode(inode, permissions):
                nodes[inode].mode = stat.S_IFMT(nodes[inode].mode) | permissions

    def files(self) -> Iterator[tuple[tuple[bytes, ...], Node]]:
        """Yield the path and the inode of each entry, folders before their contents."""
        pending: list[tuple[tuple[bytes, ...], int]] = [((), ROOT)]
        while pending:
            parts, inode = pending.pop()
            for name, child in sorted(self.nodes[inode].entries.items()):
                node = self.nodes[child]
                yield (*parts, name), node
                if stat.S_ISDIR(node.mode):
                    pending.append(((*parts, name), child))

    def write_to(self, path: Path) -> None:
        """Create the tree's files in an empty folder."""
        root = os.fsencode(path)
        for parts, node in self.files():
            target = b"/".join((root, *parts))
            if stat.S_ISDIR(node.mode):
                os.mkdir(target)  # noqa: PTH102 - names are bytes
            elif stat.S_ISLNK(node.mode):
                os.symlink(node.target, target)  # noqa: PTH211
                continue
            else:
                file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                os.write(file, node.content)
                os.close(file)
            os.chmod(target, stat.S_IMODE(node.mode))  # noqa: PTH101

    def describe(self) -> dict[bytes, tuple[int, bytes]]:
        """Return the kind and the content of each entry by its path."""
        return {
            b"/".join(parts): (stat.S_IFMT(node.mode), bytes(node.content) or node.target)
            for parts, node in self.files()
        }


def _remove_entry(folder: Node, name: bytes, inode: int) -> None:
    if folder.entries.get(name) == inode:
        del folder.entries[name]


def read_tree(path: Path) -> Tree:
    """Read a folder into memory. Sockets and pipes are left out."""
    tree = Tree()
    tree.nodes[ROOT].mode = path.stat().st_mode
    pending = [(os.fsencode(path), ROOT)]
    while pending:
        folder, number = pending.pop()
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            status = entry.stat(follow_symlinks=False)
            kind = stat.S_IFMT(status.st_mode)
            if kind not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
                continue
            inode = len(tree.nodes)
            node = Node(status.st_mode)
            tree.nodes[inode] = node
            tree.nodes[number].entries[entry.name] = inode
            if kind == stat.S_IFDIR:
                pending.append((entry.path, inode))
            elif kind == stat.S_IFREG:
                node.content = bytearray(Path(os.fsdecode(entry.path)).read_bytes())
            else:
                node.target = os.readlink(entry.path)  # noqa: PTH115
    return tree
