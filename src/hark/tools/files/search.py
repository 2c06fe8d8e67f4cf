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
from hark.tools.files.paths import display_path, missing_file_text, open_file, resolve_path
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
        if problem := _find_problem(arguments):
            raise ToolError(problem)
        path = resolve_path(arguments.path or ".", context.workspace)
        folder, query = _build_query(arguments, path, context.workspace)
        results, is_timed_out = await self._search(query, folder, min(arguments.max_results, MAX_RESULTS))
        if results.errors and not results.count:
            reason = " ".join(results.errors.split())
            raise ToolError(f"The pattern is invalid: {reason}\nTo search for plain text, set literal to true.")
        if results.count or is_timed_out:
            return _format_output(results, query, is_timed_out=is_timed_out)
        return ToolOutput(
            f"No matches for {query.pattern}{_format_place(query)}.{await self._find_reason(query, folder)}"
        )

    async def _search(
        self, query: GrepQuery, folder: Path, max_results: int, seconds: float | None = None
    ) -> tuple[GrepResults, bool]:
        """Run the query. Return the results, and whether the search timed out."""
        results, seconds = GrepResults(query, max_results), seconds or TIME_LIMIT_SECONDS
        program = shutil.which(self._ripgrep) if self._ripgrep else None
        if program is not None:
            is_timed_out = await self._run(query.ripgrep_command(program), folder, results, seconds)
            if results.count or not results.errors:
                return results, is_timed_out
            results = GrepResults(query, max_results)  # the built-in program supports more patterns
        argv = [sys.executable, "-P", "-m", "hark.tools.files.grep", msgspec.json.encode(query).decode()]
        return results, await self._run(argv, folder, results, seconds)

    async def _find_reason(self, query: GrepQuery, folder: Path) -> str:
        """Return a sentence that explains why a search found nothing, or "" if no line matches."""
        if query.target != ".":
            is_excluded = not query.includes(query.target.removeprefix("./"))
            return f" The glob {query.glob} does not match that file." if is_excluded else ""
        if not query.includes_ignored:
            ignored = msgspec.structs.replace(query, shows="files", includes_ignored=True)
            results, is_timed_out = await self._search(ignored, folder, 1, REASON_SECONDS)
            if results.count:
                return f" Ignored files match, such as {results.text}. Set ignored to true to search them."
            if is_timed_out:
                return " Files that .gitignore excludes were not searched."
        if query.glob:
            names = msgspec.structs.replace(query, shows="names")
            results, is_timed_out = await self._search(names, folder, 1, REASON_SECONDS)
            if not results.count and not is_timed_out:
                return f" No file matches the glob {query.glob}."
        return ""

    async def _run(self, argv: list[str], folder: Path, results: GrepResults, seconds: float) -> bool:
        """Run a search until it ends, finds enough results or times out. Return whether it timed out."""

        def receive(piece: bytes) -> bool:
            results.feed(piece)
            return results.is_full

        return await run_program(self._owner, argv, folder, receive, seconds)


def _find_problem(arguments: SearchArguments) -> str | None:
    pattern = arguments.pattern
    if not pattern:
        return "pattern is empty. Give the text to search for, or use list to see the files."
    if "\n" in pattern or "\0" in pattern:
        return "pattern: line breaks are not allowed; the search works line by line. Search for one of the lines."
    try:
        pattern.encode()
        parse_glob(arguments.glob)
    except ValueError as error:
        return f"The search is invalid: {error}"
    return None


def _build_query(arguments: SearchArguments, path: Path, workspace: Path) -> tuple[Path, GrepQuery]:
    """Return the folder to search in, and the query.

    Raises:
        ToolError: The path can't be searched.
    """
    if path.is_dir():
        folder, target = path, "."
    else:
        if not path.exists():
            raise ToolError(missing_file_text(path, workspace))
        _require_text(path, workspace)
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


def _require_text(path: Path, workspace: Path) -> None:
    with open_file(path, workspace) as descriptor:
        head = os.read(descriptor, HEAD_BYTES)
    if is_binary(head):
        raise ToolError(f"{display_path(path, workspace)} is binary. Search it with the shell: strings, grep -a.")


def _format_output(results: GrepResults, query: GrepQuery, *, is_timed_out: bool) -> ToolOutput:
    notes: list[str] = []
    if results.is_full:
        notes.append(f"[only the first {results.count:,} are shown; narrow the pattern, path or glob to see others]")
    if is_timed_out:
        notes.append(f"[stopped after {TIME_LIMIT_SECONDS:g} seconds. Narrow the path or glob to find more]")
    lines = [results.text] if results.count else [f"No matches for {query.pattern}{_format_place(query)}."]
    return ToolOutput("\n".join([*lines, *notes]))


def _format_place(query: GrepQuery) -> str:
    """Return the searched file or folder, or "" for the whole workspace."""
    path = "/".join(filter(None, (query.folder, query.target.removeprefix(".").removeprefix("/"))))
    return f" in {path}" if path else ""
