"""The `search` tool: searches files for text, with ripgrep if it is installed, otherwise with a built-in program."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hark.processes.cookies import ProcessOwner
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.child_program import run_program
from hark.tools.files.file_text import HEAD_BYTES, is_binary
from hark.tools.files.globs import parse_glob
from hark.tools.files.paths import display_path, open_file, resolve_path
from hark.tools.files.search_query import GrepQuery
from hark.tools.files.search_results import GrepResults

DEFAULT_RESULTS = 200
MAX_RESULTS = 2_000
MAX_CONTEXT_LINES = 20
TIME_LIMIT_SECONDS = 30.0
REASON_SECONDS = 3.0


class SearchArguments(ToolArguments, frozen=True):
    """Search the contents of files line by line. Binary files are skipped. To find files by name, use list."""

    pattern: Annotated[str, doc("A regular expression, or plain text with `literal`.")]
    literal: Annotated[bool, doc("Treat the pattern as plain text, not as a regular expression.")] = False
    path: Annotated[str, doc("The folder or file to search (default: the workspace).")] = ""
    glob: Annotated[str, doc("Search only files whose path matches, such as *.py, src/**/*.{ts,tsx} or !*.md.")] = ""
    ignored: Annotated[bool, doc("Also search files that .gitignore excludes.")] = False
    ignore_case: Annotated[bool, doc("Ignore case when matching.")] = False
    context: Annotated[int, doc("How many lines to show around each match (default: 0).", ge=0)] = 0
    show: Annotated[
        Literal["lines", "files", "counts"],
        doc("Show the matching lines, only the file names, or the number of lines per file (default: lines)."),
    ] = "lines"
    max_results: Annotated[int, doc(f"Maximum number of results (default: {DEFAULT_RESULTS}).", ge=1)] = DEFAULT_RESULTS


class SearchTool:
    """The tool that searches with `ripgrep`, or with a built-in program if ripgrep isn't installed."""

    spec = tool_spec(SearchArguments, "search", grace_seconds=0.9)

    def __init__(self, owner: ProcessOwner, ripgrep: str | None = "rg") -> None:
        self._owner = owner
        self._ripgrep = ripgrep

    async def run(self, arguments: SearchArguments, context: CallContext) -> ToolOutput:
        """Return the matches. Cancelling kills the search."""
        _check_pattern(arguments)
        folder, query = _build_query(arguments, context.workspace)
        results = await self._search(query, folder, min(arguments.max_results, MAX_RESULTS), TIME_LIMIT_SECONDS)
        if results.errors and not results.count:
            reason = " ".join(results.errors.split())
            raise ToolError(f"The pattern is invalid: {reason}\nTo search for plain text, set literal to true.")
        lines = [results.text]
        if not results.count:
            reason = "" if results.is_timed_out else await self._find_reason(query, folder)
            place = Path(query.folder, query.target)
            lines = [f"No matches for {query.pattern}{f' in {place}' if place != Path() else ''}.{reason}"]
        if results.is_full:
            lines.append(f"[only the first {results.count:,} are shown; narrow the pattern, path or glob]")
        if results.is_timed_out:
            lines.append(f"[stopped after {TIME_LIMIT_SECONDS:g} seconds. Narrow the path or glob to find more]")
        return ToolOutput("\n".join(lines))

    async def _search(self, query: GrepQuery, folder: Path, max_results: int, seconds: float) -> GrepResults:
        """Run the query until it ends, finds enough results or times out."""
        own = [sys.executable, "-P", "-m", "hark.tools.files.grep", msgspec.json.encode(query).decode()]
        program = shutil.which(self._ripgrep) if self._ripgrep else None
        results = GrepResults(query, max_results)
        for argv in (query.ripgrep_command(program), own) if program else (own,):
            results = GrepResults(query, max_results)
            results.is_timed_out = await run_program(self._owner, argv, folder, results.feed, seconds)
            if results.count or not results.errors:  # otherwise Hark's own program may support the pattern
                break
        return results

    async def _find_reason(self, query: GrepQuery, folder: Path) -> str:
        """Return a sentence that explains why a search found nothing, or "" if no line matches."""
        if query.target != ".":
            is_excluded = not query.includes(query.target.removeprefix("./"))
            return f" The glob {query.glob} does not match that file." if is_excluded else ""
        if not query.includes_ignored:
            ignored = msgspec.structs.replace(query, shows="files", includes_ignored=True)
            results = await self._search(ignored, folder, 1, REASON_SECONDS)
            if results.count:
                return f" Ignored files match, such as {results.text}. Set ignored to true to search them."
            if results.is_timed_out:
                return " Files that .gitignore excludes were not searched."
        if query.glob:
            names = msgspec.structs.replace(query, shows="names")
            results = await self._search(names, folder, 1, REASON_SECONDS)
            if not results.count and not results.is_timed_out:
                return f" No file matches the glob {query.glob}."
        return ""


def _check_pattern(arguments: SearchArguments) -> None:
    pattern = arguments.pattern
    if not pattern:
        raise ToolError("pattern is empty. Give the text to search for, or use list to see the files.")
    if "\n" in pattern or "\0" in pattern:
        raise ToolError(
            "pattern: line breaks are not allowed; the search works line by line. Search for one of the lines."
        )
    try:
        pattern.encode()
        parse_glob(arguments.glob)
    except ValueError as error:
        raise ToolError(f"The search is invalid: {error}") from error


def _build_query(arguments: SearchArguments, workspace: Path) -> tuple[Path, GrepQuery]:
    """Return the folder to search in, and the query.

    Raises:
        ToolError: The path can't be searched.
    """
    path = resolve_path(arguments.path or ".", workspace)
    folder, target = path, "."
    if not path.is_dir():
        with open_file(path, workspace) as descriptor:
            if is_binary(os.read(descriptor, HEAD_BYTES)):
                name = display_path(path, workspace)
                raise ToolError(f"{name} is binary. Search it with the shell: strings, grep -a.")
        folder, target = path.parent, f"./{path.name}"
    name = display_path(folder.resolve(), workspace.resolve())
    return folder, GrepQuery(
        arguments.pattern,
        is_literal=arguments.literal,
        ignores_case=arguments.ignore_case,
        glob=arguments.glob,
        context=min(arguments.context, MAX_CONTEXT_LINES),
        shows=arguments.show,
        target=target,
        folder="" if name == "." else name,
        includes_ignored=arguments.ignored,
    )
