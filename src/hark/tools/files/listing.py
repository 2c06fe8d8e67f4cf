"""The tool that lists what is in a folder, or finds files by their names."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import anyio
import anyio.lowlevel

from hark.disk.tree_walk import TreeEntry, TreeWalk
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.globs import compile_glob
from hark.tools.files.paths import missing, resolve, shown

DEFAULT_DEPTH = 2
DEEPEST = 500
MOST_ENTRIES = 600
MOST_OF_FOLDER = 200
MOST_READ = 20_000
LIMIT_SECONDS = 15.0
STRETCH_SECONDS = 0.01


class ListArguments(ToolArguments, frozen=True):
    """List a folder as a tree, with the sizes of files, or find files by name with `glob`.

    Hidden files and what .gitignore leaves out are passed over unless you ask for them.
    """

    path: Annotated[str, doc("The folder (the workspace).")] = ""
    depth: Annotated[int, doc(f"How many levels ({DEFAULT_DEPTH}; with a glob, all of them).", ge=1)] | None = None
    glob: Annotated[str, doc("Only files like this, as paths: *.py, src/**/test_*.py.")] = ""
    hidden: Annotated[bool, doc("Also what begins with a dot, but never .git.")] = False
    ignored: Annotated[bool, doc("Also what .gitignore leaves out.")] = False


class ListFolder:
    """Lists folders, a little at a time, so that nothing else waits."""

    spec = tool_spec(ListArguments, "list")

    async def run(self, arguments: ListArguments, context: CallContext) -> ToolOutput:
        """Return the list. Safe to cancel at any time."""
        glob = arguments.glob
        folder = resolve(arguments.path or ".", context.workspace)
        try:
            pattern = compile_glob(glob)
        except ValueError as error:
            raise ToolError(f"glob: {error}") from error
        _demand_folder(folder, context.workspace)
        walk = TreeWalk(
            depth=arguments.depth or (DEEPEST if glob else DEFAULT_DEPTH),
            hidden=arguments.hidden,
            ignored=arguments.ignored,
            most_of_folder=MOST_READ if glob else MOST_OF_FOLDER,
            most_read=MOST_READ,
        )
        line_of = _match_lines(folder, context.workspace, pattern) if glob else _tree_line
        lines: list[str] = []
        with anyio.move_on_after(LIMIT_SECONDS) as limit:
            await _fill(lines, walk.through(folder), line_of)
        notes: list[str] = []
        if limit.cancelled_caught:
            notes.append(f"[stopped after {LIMIT_SECONDS:g} seconds; name a folder further down]")
        if len(lines) > MOST_ENTRIES:
            del lines[MOST_ENTRIES:]
            notes.append(f"[only the first {MOST_ENTRIES} are shown; name a folder further down, or a narrower glob]")
        told = lines or [f"No file is like {glob}." if glob else "[the folder is empty, or all in it is hidden]"]
        heading = [] if glob else [f"{shown(folder, context.workspace)}/"]
        return ToolOutput("\n".join([*heading, *told, *notes]))


def _match_lines(folder: Path, workspace: Path, pattern: re.Pattern[str]) -> Callable[[TreeEntry], str]:
    """Return what gives the line for a file whose path, from the folder or the workspace, matches; "" for others."""
    start = len(str(folder).rstrip("/")) + 1
    place = shown(folder, workspace)
    prefix = "" if place == "." else f"{place.rstrip('/')}/"

    def line(found: TreeEntry) -> str:
        inside = found.path[start:]
        name = prefix + inside
        if found.is_folder or found.left_out or not any(map(pattern.fullmatch, (inside, name))):
            return ""
        return f"{_printable(name)}{_size(found)}"

    return line


async def _fill(lines: list[str], walk: Iterable[TreeEntry], line_of: Callable[[TreeEntry], str]) -> None:
    """Add a line for each entry, up to one more than are shown, and let others run in between."""
    began = anyio.current_time()
    for found in walk:
        if line := line_of(found):
            lines.append(line)
        if len(lines) > MOST_ENTRIES:
            return
        if anyio.current_time() - began > STRETCH_SECONDS:
            await anyio.lowlevel.checkpoint()
            began = anyio.current_time()


def _demand_folder(folder: Path, workspace: Path) -> None:
    name = shown(folder, workspace)
    try:
        if folder.is_dir():
            next(folder.iterdir(), None)
        elif folder.exists():
            raise ToolError(f"{name} is not a folder. Read it with read.")
        else:
            raise ToolError(missing(folder, workspace))
    except OSError as error:
        raise ToolError(f"{name} can't be listed: {error.strerror}.") from error


def _tree_line(found: TreeEntry) -> str:
    indent, name = "  " * found.depth, _printable(Path(found.path).name)
    if found.left_out:
        return f"{indent}... and {found.left_out:,} more here"
    if found.is_folder:
        return f"{indent}{name}/"
    if found.is_link:
        return f"{indent}{name} -> {_link(found.path)}"
    return f"{indent}{name}{_size(found)}"


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
