"""The tool that searches files for text: with ripgrep where it is, with a program of our own where not."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import anyio
import msgspec

from hark.processes.cookies import Owner, with_cookie
from hark.processes.start import Command, Launch, first_of
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.file_text import HEAD_BYTES, is_binary
from hark.tools.files.globs import alternatives
from hark.tools.files.paths import missing, open_file, resolve, shown
from hark.tools.files.search_query import GrepQuery
from hark.tools.files.search_results import Findings

DEFAULT_RESULTS = 200
MOST_RESULTS = 2_000
MOST_CONTEXT = 20
LIMIT_SECONDS = 30.0
_BEYOND_RIPGREP = re.compile(r"look-?around|backreference|look-ahead|look-behind", re.IGNORECASE)


class SearchArguments(ToolArguments, frozen=True):
    """Search the contents of files, line by line. What .gitignore leaves out and binary files are passed over.

    To find files by their names use list.
    """

    pattern: Annotated[str, doc("A regular expression, or plain text with `literal`.")]
    literal: Annotated[bool, doc("Take the pattern as plain text.")] = False
    path: Annotated[str, doc("The folder or file to look into (the workspace).")] = ""
    glob: Annotated[str, doc("Only files like this: *.py, src/**/*.{ts,tsx}.")] = ""
    ignore_case: Annotated[bool, doc("Find capital and small letters alike.")] = False
    context: Annotated[int, doc("How many lines around each match (0).", ge=0)] = 0
    show: Annotated[
        Literal["lines", "files", "counts"],
        doc("The matching lines, only their files, or how many lines in each file (lines)."),
    ] = "lines"
    max_results: Annotated[int, doc(f"Stop after so many ({DEFAULT_RESULTS}).", ge=1)] = DEFAULT_RESULTS


class SearchTool:
    """Searches in a process that `owner` starts: with the program `ripgrep` if it is installed, or else our own."""

    spec = tool_spec(SearchArguments, "search", grace_seconds=0.9)

    def __init__(self, owner: Owner, ripgrep: str | None = "rg") -> None:
        self._owner = owner
        self._ripgrep = ripgrep

    async def run(self, arguments: SearchArguments, context: CallContext) -> ToolOutput:
        """Return what is found. Cancelling kills the search."""
        if problem := _problem(arguments):
            raise ToolError(problem)
        place = resolve(arguments.path or ".", context.workspace)
        folder, query = _query(arguments, place, context.workspace)
        return await self._find(query, folder, arguments.max_results)

    async def _find(self, query: GrepQuery, folder: Path, most: int) -> ToolOutput:
        findings = Findings(query, min(most, MOST_RESULTS))
        program = shutil.which(self._ripgrep) if self._ripgrep else None
        if program is not None:
            is_late = await self._run(query.ripgrep_words(program), folder, findings)
            if not (findings.errors and _BEYOND_RIPGREP.search(findings.errors)):
                return _output(findings, query, is_late=is_late)
            findings = Findings(query, min(most, MOST_RESULTS))
        words = [sys.executable, "-P", "-m", "hark.tools.files.grep", msgspec.json.encode(query).decode()]
        return _output(findings, query, is_late=await self._run(words, folder, findings))

    async def _run(self, words: list[str], folder: Path, findings: Findings) -> bool:
        """Run a search until it ends, enough is found or its time is over; tell whether it was the last."""
        full = anyio.Event()
        cookie = self._owner.new_cookie()

        def receive(piece: bytes) -> None:
            findings.take(piece)
            if findings.is_full:
                full.set()

        try:
            command = Command(Launch(words, folder, with_cookie(os.environ, cookie), cookie), receive)
        except (OSError, ValueError) as error:
            raise ToolError(f"The search could not be started: {error}.") from error
        try:
            with anyio.move_on_after(LIMIT_SECONDS) as limit:
                await first_of(full.wait, command.finished)
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the stop itself
                await command.stop(grace_seconds=0.0)
        return limit.cancelled_caught


def _problem(arguments: SearchArguments) -> str | None:
    pattern = arguments.pattern
    if not pattern:
        return "pattern: it is empty. Say what to search for; to see which files there are use list."
    if "\n" in pattern or "\0" in pattern:
        return "pattern: a search goes line by line. Search for one of the lines."
    try:
        pattern.encode()
        alternatives(arguments.glob)
    except ValueError as error:
        return f"The search can't be made: {error}"
    return None


def _query(arguments: SearchArguments, place: Path, workspace: Path) -> tuple[Path, GrepQuery]:
    """Return the folder to search in, and what for.

    Raises:
        ToolError: The place is not one that can be searched.
    """
    if place.is_dir():
        folder, target = place, "."
    else:
        if not place.exists():
            raise ToolError(missing(place, workspace))
        _demand_text(place, workspace)
        folder, target = place.parent, f"./{place.name}"
    name = shown(folder.resolve(), workspace.resolve())
    return folder, GrepQuery(
        arguments.pattern,
        is_literal=arguments.literal,
        ignores_case=arguments.ignore_case,
        glob=arguments.glob,
        context=min(arguments.context, MOST_CONTEXT),
        shows=arguments.show,
        target=target,
        folder="" if name == "." else name,
    )


def _demand_text(path: Path, workspace: Path) -> None:
    with open_file(path, workspace) as descriptor:
        head = os.read(descriptor, HEAD_BYTES)
    if is_binary(head):
        raise ToolError(f"{shown(path, workspace)} is binary, not text. Search it with the shell: strings, grep -a.")


def _output(findings: Findings, query: GrepQuery, *, is_late: bool) -> ToolOutput:
    if findings.errors and not findings.count:
        reason = " ".join(findings.errors.split())
        raise ToolError(f"The pattern can't be used: {reason}\nFor plain text say literal: true.")
    notes: list[str] = []
    if findings.is_full:
        notes.append(f"[only the first {findings.count:,} are shown; narrow the pattern, path or glob for the rest]")
    if is_late:
        notes.append(f"[stopped after {LIMIT_SECONDS:g} seconds; there may be more. Narrow the path or glob]")
    if not findings.count:
        where = f" in {query.folder}" if query.folder else ""
        return ToolOutput("\n".join([f"Nothing matches {query.pattern}{where}.", *notes]))
    return ToolOutput("\n".join([findings.text, *notes]))
