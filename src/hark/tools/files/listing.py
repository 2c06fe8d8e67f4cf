"""The tool that lists what is in a folder, or finds files by their names."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from hark.disk.tree_walk import TreeEntry, TreeWalk
from hark.protocol.tool import CallContext, ToolOutput, ToolSpec
from hark.tools.arguments import check
from hark.tools.files.errors import ToolRefused, refuse_if
from hark.tools.files.globs import compile_glob
from hark.tools.files.paths import missing, resolve, shown

DEFAULT_DEPTH = 2
DEEPEST = 500
MOST_ENTRIES = 600
MOST_OF_FOLDER = 200
MOST_READ = 20_000
LIMIT_SECONDS = 15.0
STRETCH_SECONDS = 0.01

_SPEC = ToolSpec(
    name="list",
    description=(
        "List a folder as a tree, with the sizes of files, or find files by name with `glob`. "
        "Hidden files and what .gitignore leaves out are passed over unless you ask for them."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The folder (the workspace)."},
            "depth": {
                "type": "integer",
                "minimum": 1,
                "description": f"How many levels ({DEFAULT_DEPTH}; with a glob, all of them).",
            },
            "glob": {"type": "string", "description": "Only files like this, as paths: *.py, src/**/test_*.py."},
            "hidden": {"type": "boolean", "description": "Also what begins with a dot, but never .git."},
            "ignored": {"type": "boolean", "description": "Also what .gitignore leaves out."},
        },
        "additionalProperties": False,
    },
)


class ListFolder:
    """Lists folders, a little at a time, so that nothing else waits."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Return the list. Safe to cancel at any time."""
        try:
            refuse_if(_problem(arguments))
            folder = resolve(arguments.get("path") or ".", context.workspace)
            refuse_if(_not_a_folder(folder, context.workspace))
        except ToolRefused as refused:
            return refused.as_output()
        glob: str = arguments.get("glob") or ""
        walk = TreeWalk(
            depth=arguments.get("depth") or (DEEPEST if glob else DEFAULT_DEPTH),
            hidden=bool(arguments.get("hidden")),
            ignored=bool(arguments.get("ignored")),
            most_of_folder=MOST_READ if glob else MOST_OF_FOLDER,
            most_read=MOST_READ,
        )
        lines = _Matches(folder, context.workspace, glob) if glob else _Tree(folder)
        with anyio.move_on_after(LIMIT_SECONDS) as limit:
            await _fill(lines, walk.through(folder))
        notes = (
            [f"[stopped after {LIMIT_SECONDS:g} seconds; name a folder further down]"] if limit.cancelled_caught else []
        )
        if lines.is_full:
            notes.append(f"[only the first {MOST_ENTRIES} are shown; name a folder further down, or a narrower glob]")
        told = lines.told or [f"No file is like {glob}." if glob else "[the folder is empty, or all in it is hidden]"]
        heading = [] if glob else [f"{shown(folder, context.workspace)}/"]
        return ToolOutput("\n".join([*heading, *told, *notes]))


class _Tree:
    """A folder as an indented list."""

    def __init__(self, folder: Path) -> None:
        self.told: list[str] = []
        self.is_full = False
        self._folder = folder

    def take(self, found: TreeEntry) -> None:
        self.is_full = len(self.told) >= MOST_ENTRIES
        if not self.is_full:
            self.told.append("  " * found.depth + _line(found))


class _Matches:
    """The files whose paths, from the folder or from the workspace, are like a glob."""

    def __init__(self, folder: Path, workspace: Path, glob: str) -> None:
        self.told: list[str] = []
        self.is_full = False
        self._start = len(str(folder).rstrip("/")) + 1
        name = shown(folder, workspace)
        self._prefix = "" if name == "." else f"{name.rstrip('/')}/"
        self._pattern = compile_glob(glob)

    def take(self, found: TreeEntry) -> None:
        if found.is_folder or found.left_out:
            return
        inside = found.path[self._start :]
        name = self._prefix + inside
        if self._pattern.fullmatch(inside) or self._pattern.fullmatch(name):
            self.is_full = len(self.told) >= MOST_ENTRIES
            if not self.is_full:
                self.told.append(f"{_printable(name)}{_size(found)}")


async def _fill(lines: _Tree | _Matches, walk: Iterable[TreeEntry]) -> None:
    began = anyio.current_time()
    for found in walk:
        lines.take(found)
        if lines.is_full:
            return
        if anyio.current_time() - began > STRETCH_SECONDS:
            await anyio.lowlevel.checkpoint()
            began = anyio.current_time()


def _problem(arguments: Mapping[str, Any]) -> str | None:
    if problem := check(_SPEC, arguments):
        return problem
    if (arguments.get("depth") or 1) < 1:
        return "depth: expected a whole number from 1 on."
    try:
        compile_glob(arguments.get("glob") or "")
    except ValueError as error:
        return f"glob: {error}"
    return None


def _not_a_folder(folder: Path, workspace: Path) -> str | None:
    name = shown(folder, workspace)
    try:
        if folder.is_dir():
            next(folder.iterdir(), None)
            return None
        return f"{name} is not a folder. Read it with read." if folder.exists() else missing(folder, workspace)
    except OSError as error:
        return f"{name} can't be listed: {error.strerror}."


def _line(found: TreeEntry) -> str:
    if found.left_out:
        return f"... and {found.left_out:,} more here"
    name = _printable(Path(found.path).name)
    if found.is_folder:
        return f"{name}/"
    if found.is_link:
        return f"{name} -> {_link(found.path)}"
    return f"{name}{_size(found)}"


def _link(path: str) -> str:
    try:
        return _printable(str(Path(path).readlink()))
    except OSError:
        return "?"


def _printable(name: str) -> str:
    return name.encode(errors="replace").decode()


def _size(found: TreeEntry) -> str:
    if not found.is_file:
        return "" if found.is_link else "  (not a regular file)"
    try:
        size = float(Path(found.path).lstat().st_size)
    except OSError:  # it is gone by now
        return ""
    if size < 1_000:
        return f"  {size:.0f} B"
    for unit in ("kB", "MB", "GB"):
        size /= 1_000
        if size < 1_000:
            return f"  {size:.1f} {unit}"
    return f"  {size / 1_000:.1f} TB"
