"""The `list` tool: lists a folder, or finds files by name."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import anyio
import anyio.lowlevel

from hark.disk.tree_walk import TreeEntry, TreeWalk
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.text.cleanup import replace_surrogates
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.globs import Glob, parse_glob
from hark.tools.files.paths import display_path, missing_file_text, resolve_path

DEFAULT_DEPTH = 2
MAX_DEPTH = 500
MAX_ENTRIES = 600
MAX_ENTRIES_PER_FOLDER = 200
MAX_READ_ENTRIES = 20_000
TIME_LIMIT_SECONDS = 15.0
YIELD_INTERVAL_SECONDS = 0.01


class ListArguments(ToolArguments, frozen=True):
    """List a folder as a tree with file sizes, or find files by name with `glob`.

    Hidden files and files that .gitignore excludes are omitted, unless you ask for them.
    """

    path: Annotated[str, doc("The folder to list (default: the workspace).")] = ""
    depth: Annotated[int, doc(f"Levels to list (default: {DEFAULT_DEPTH}; with a glob, all).", ge=1)] | None = None
    glob: Annotated[str, doc("List only files whose path matches a glob, such as *.py or src/**/test_*.py.")] = ""
    hidden: Annotated[bool, doc("Include names that begin with a dot, but never .git.")] = False
    ignored: Annotated[bool, doc("Include files that .gitignore excludes.")] = False


class ListTool:
    """The tool that lists folders. It yields to the event loop often, so that other tasks aren't delayed."""

    spec = tool_spec(ListArguments, "list")

    async def run(self, arguments: ListArguments, context: CallContext) -> ToolOutput:
        """Return the listing. Safe to cancel at any time."""
        glob = arguments.glob
        folder = resolve_path(arguments.path or ".", context.workspace)
        try:
            pattern = parse_glob(glob)
        except ValueError as error:
            raise ToolError(f"glob: {error}") from error
        _require_folder(folder, context.workspace)
        walk = TreeWalk(
            max_depth=arguments.depth or (MAX_DEPTH if glob else DEFAULT_DEPTH),
            include_hidden=arguments.hidden,
            include_ignored=arguments.ignored,
            max_listed=MAX_READ_ENTRIES if glob else MAX_ENTRIES_PER_FOLDER,
            max_read=MAX_READ_ENTRIES,
        )
        format_entry = _glob_formatter(folder, context.workspace, pattern) if glob else _format_tree_line
        lines: list[str] = []
        with anyio.move_on_after(TIME_LIMIT_SECONDS) as limit:
            await _collect_lines(lines, walk.walk(folder), format_entry)
        notes: list[str] = []
        if limit.cancelled_caught:
            notes.append(f"[stopped after {TIME_LIMIT_SECONDS:g} seconds; list a subfolder instead]")
        if len(lines) > MAX_ENTRIES:
            del lines[MAX_ENTRIES:]
            notes.append(f"[only the first {MAX_ENTRIES} are shown; list a subfolder, or use a narrower glob]")
        entries = lines or [f"No file matches {glob}." if glob else "[the folder is empty, or its contents are hidden]"]
        heading = [] if glob else [f"{display_path(folder, context.workspace)}/"]
        return ToolOutput("\n".join([*heading, *entries, *notes]))


def _glob_formatter(folder: Path, workspace: Path, glob: Glob) -> Callable[[TreeEntry], str]:
    """Return a function that formats a file if its path relative to the folder or the workspace matches `glob`.

    It returns "" for other entries.
    """
    start = len(str(folder).rstrip("/")) + 1
    folder_name = display_path(folder, workspace)
    prefix = "" if folder_name == "." else f"{folder_name.rstrip('/')}/"

    def format_match(found: TreeEntry) -> str:
        inside = found.path[start:]
        name = prefix + inside
        if found.is_folder or found.unlisted_count or not glob.matches(inside, name):
            return ""
        return f"{replace_surrogates(name)}{_format_details(found)}"

    return format_match


async def _collect_lines(lines: list[str], walk: Iterable[TreeEntry], format_entry: Callable[[TreeEntry], str]) -> None:
    """Add a line for each entry, but stop at one more than `MAX_ENTRIES`. Yields to other tasks regularly."""
    started = anyio.current_time()
    for found in walk:
        if line := format_entry(found):
            lines.append(line)
        if len(lines) > MAX_ENTRIES:
            return
        if anyio.current_time() - started > YIELD_INTERVAL_SECONDS:
            await anyio.lowlevel.checkpoint()
            started = anyio.current_time()


def _require_folder(folder: Path, workspace: Path) -> None:
    name = display_path(folder, workspace)
    try:
        if folder.is_dir():
            next(folder.iterdir(), None)
        elif folder.exists():
            raise ToolError(f"{name} is not a folder. Use read for files.")
        else:
            raise ToolError(missing_file_text(folder, workspace))
    except OSError as error:
        raise ToolError(f"{name} can't be listed: {error.strerror}.") from error


def _format_tree_line(found: TreeEntry) -> str:
    indent, name = "  " * found.depth, replace_surrogates(Path(found.path).name)
    if found.unlisted_count:
        return f"{indent}... and {found.unlisted_count:,} more here"
    return f"{indent}{name}/" if found.is_folder else f"{indent}{name}{_format_details(found)}"


def _format_details(found: TreeEntry) -> str:
    """Return the size of a file, the target of a link, or "" if the file was deleted in the meantime."""
    path = Path(found.path)
    try:
        if found.is_link:
            return f" -> {replace_surrogates(str(path.readlink()))}"
        size = float(path.lstat().st_size)
    except OSError:
        return ""
    if not found.is_file:
        return "  (not a regular file)"
    units = ["B", "kB", "MB", "GB", "TB"]
    while size >= 1_000 and len(units) > 1:
        size /= 1_000
        del units[0]
    return f"  {size:.{0 if units[0] == 'B' else 1}f} {units[0]}"
