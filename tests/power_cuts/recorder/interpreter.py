"""Converts system calls into operations on the recorded folder."""

import json
import os.path
import re
import stat
from collections.abc import Sequence

from tests.power_cuts.disk.operations import (
    Change,
    ChangeMode,
    Create,
    Link,
    Mark,
    Operation,
    Remove,
    Rename,
    Sync,
    Truncate,
    Write,
)
from tests.power_cuts.disk.tree import Tree
from tests.power_cuts.recorder.open_files import OpenFile, OpenFiles
from tests.power_cuts.recorder.system_calls import SystemCall, decode_text, descriptor_of

UMASK = 0o022  # of every recorded process
_STRING = re.compile(r'"[^"]*"')


class Interpreter:
    """Follows the state of the recorded folder, and collects its operations."""

    def __init__(self, root: bytes, marks: bytes, base: Tree, calls: Sequence[SystemCall]) -> None:
        self.operations: list[Operation] = []
        self.tree = base.copy()
        self._root = root + b"/"
        self._marks = marks
        self._calls = calls
        self._files = OpenFiles(calls)
        self._counts = [0]  # the number of operations after each call

    def run(self) -> None:
        """Interpret all calls."""
        for call in self._calls:
            for argument in call.arguments:
                if argument.startswith("AT_FDCWD<"):
                    self._files.set_working_folder(call.process, descriptor_of(argument)[1])
                    break
            self._interpret(call)
            self._counts.append(len(self.operations))

    def _interpret(self, call: SystemCall) -> None:
        arguments, process = call.arguments, call.process
        match call.name:
            case "open" | "openat" | "creat":
                self._open(call)
            case "dup" | "dup2" | "dup3":
                self._files.set(process, call.result, self._file(call, 0))
            case "fcntl":
                if arguments[1].startswith("F_DUPFD"):
                    self._files.set(process, call.result, self._file(call, 0))
            case "lseek":
                if file := self._file(call, 0):
                    file.position = call.result
            case "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2":
                self._write(call)
            case "copy_file_range":
                self._copy(call, source=0, source_offset=1, target=2, target_offset=3)
            case "sendfile":
                self._copy(call, source=1, source_offset=2, target=0, target_offset=None)
            case "ftruncate" | "fallocate":
                self._resize(call)
            case "fsync" | "fdatasync":
                inode = file.inode if (file := self._file(call, 0)) else self._find(descriptor_of(arguments[0])[1])
                if inode is not None:
                    self.operations.append(Sync(inode, self._counts[call.began]))
            case "sync" | "syncfs":
                self.operations.append(Sync(None, self._counts[call.began]))
            case _:
                self._change_entry(call)

    def _change_entry(self, call: SystemCall) -> None:
        match call.name:
            case "mkdir" | "mkdirat":
                first = len(call.arguments) - 2
                self._create(self._path(call, first), stat.S_IFDIR | int(call.arguments[-1], 8) & ~UMASK)
            case "symlink" | "symlinkat":
                path = self._path(call, len(call.arguments) - 1)
                self._create(path, stat.S_IFLNK | 0o777, decode_text(call.arguments[0]))
            case "unlink" | "rmdir" | "unlinkat":
                path = self._path(call, 0 if call.name != "unlinkat" else 1)
                if (slot := self._slot(path)) and self._find(path) is not None:
                    self._apply(Remove(*slot))
            case "rename" | "renameat" | "renameat2":
                self._rename(call)
            case "link" | "linkat":
                source, target = (0, 1) if call.name == "link" else (1, 3)
                inode, slot = self._find(self._path(call, source)), self._slot(self._path(call, target))
                if inode is not None and slot:
                    self._apply(Link(*slot, inode))
            case "chmod" | "fchmod" | "fchmodat":
                self._change_mode(call)
            case "chdir":
                self._files.set_working_folder(call.process, self._path(call, 0))
            case _:
                pass

    def _open(self, call: SystemCall) -> None:
        path = call.result_path
        if path == self._marks:
            self._files.set(call.process, call.result, None)
            return
        flags = call.arguments[1 if call.name == "open" else 2] if call.name != "creat" else "O_CREAT|O_TRUNC"
        inode = self._find(path)
        if inode is None and "O_CREAT" in flags:
            inode = self._create(path, stat.S_IFREG | int(call.arguments[-1], 8) & ~UMASK)
        elif inode is not None and "O_TRUNC" in flags and self.tree.nodes[inode].content:
            self._apply(Truncate(inode, 0))
        file = None if inode is None else OpenFile(inode, is_append="O_APPEND" in flags)
        self._files.set(call.process, call.result, file)

    def _write(self, call: SystemCall) -> None:
        number, path = descriptor_of(call.arguments[0])
        if path != self._marks and not path.startswith(self._root):
            return
        data = b"".join(decode_text(text) for text in _STRING.findall(call.arguments[1]))[: call.result]
        if path == self._marks:
            self.operations.append(Mark(json.loads(data)))
            return
        file = self._files.get(call.process, number)
        if file is None:
            raise ValueError(f"a write to {path!r}, which no recorded call opened")
        if call.name.startswith("p"):
            self._apply(Write(file.inode, int(call.arguments[3]), data))
        else:
            self._append(file, data)

    def _append(self, file: OpenFile, data: bytes) -> None:
        if file.is_append:
            file.position = len(self.tree.nodes[file.inode].content)
        self._apply(Write(file.inode, file.position, data))
        file.position += len(data)

    def _copy(
        self, call: SystemCall, *, source: int, source_offset: int, target: int, target_offset: int | None
    ) -> None:
        to_file, from_file = self._file(call, target), self._file(call, source)
        if to_file is None or not call.result:
            return
        if from_file is None:
            raise ValueError(f"a copy from {call.arguments[source]}, which was not recorded")
        offset = call.arguments[source_offset]
        start = from_file.position if offset == "NULL" else _first_number(offset)
        data = bytes(self.tree.nodes[from_file.inode].content[start : start + call.result])
        if offset == "NULL":
            from_file.position += call.result
        if target_offset is not None and call.arguments[target_offset] != "NULL":
            self._apply(Write(to_file.inode, _first_number(call.arguments[target_offset]), data))
        else:
            self._append(to_file, data)

    def _resize(self, call: SystemCall) -> None:
        if (file := self._file(call, 0)) is None:
            return
        size = len(self.tree.nodes[file.inode].content)
        if call.name == "ftruncate":
            self._apply(Truncate(file.inode, int(call.arguments[1])))
        elif call.arguments[1] == "0":
            self._apply(Truncate(file.inode, max(size, int(call.arguments[2]) + int(call.arguments[3]))))

    def _rename(self, call: SystemCall) -> None:
        first, second = (0, 1) if call.name == "rename" else (1, 3)
        old, new = self._path(call, first), self._path(call, second)
        inode, source, target = self._find(old), self._slot(old), self._slot(new)
        if inode is None or source is None or target is None:
            return
        exchanged = self._find(new) if "RENAME_EXCHANGE" in call.arguments[-1] else None
        self._apply(Rename(*source, *target, inode, exchanged))

    def _change_mode(self, call: SystemCall) -> None:
        if call.name == "fchmod":
            number, path = descriptor_of(call.arguments[0])
            file = self._files.get(call.process, number)
            inode = file.inode if file else self._find(path)
        else:
            inode = self._find(self._path(call, 0 if call.name == "chmod" else 1))
        if inode is not None:
            mode = call.arguments[2 if call.name == "fchmodat" else 1]
            self._apply(ChangeMode(inode, int(mode, 8)))

    def _create(self, path: bytes, mode: int, target: bytes = b"") -> int | None:
        if (slot := self._slot(path)) is None:
            return None
        inode = max(self.tree.nodes) + 1
        self._apply(Create(*slot, inode, mode, target))
        return inode

    def _apply(self, change: Change) -> None:
        self.operations.append(change)
        self.tree.apply(change)

    def _file(self, call: SystemCall, argument: int) -> OpenFile | None:
        return self._files.get(call.process, descriptor_of(call.arguments[argument])[0])

    def _path(self, call: SystemCall, argument: int) -> bytes:
        """Return an absolute path. The folder of a relative path is the argument before it, or the working one."""
        path = decode_text(call.arguments[argument])
        if path.startswith(b"/"):
            return os.path.normpath(path)
        folder = b""
        if call.name.endswith(("at", "at2")):
            folder = descriptor_of(call.arguments[argument - 1])[1]
        return os.path.normpath(os.path.join(folder or self._files.working_folder(call.process), path))  # noqa: PTH118

    def _parts(self, path: bytes) -> tuple[bytes, ...] | None:
        if path + b"/" == self._root:
            return ()
        return tuple(path.removeprefix(self._root).split(b"/")) if path.startswith(self._root) else None

    def _find(self, path: bytes) -> int | None:
        parts = self._parts(path)
        return None if parts is None else self.tree.find(parts)

    def _slot(self, path: bytes) -> tuple[int, bytes] | None:
        """Return the folder and the name of a directory entry below the root."""
        parts = self._parts(path)
        if not parts:
            return None
        folder = self.tree.find(parts[:-1])
        return None if folder is None else (folder, parts[-1])


def _first_number(argument: str) -> int:
    """Return the value of an offset before the call, from a text such as `[0] => [8]`."""
    return int(argument.strip("[").partition("]")[0])
