"""The `edit` tool: replaces exact text in a file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.atomic_write import FileChange, apply_changes, read_old_content, resolve_target
from hark.tools.files.diffs import unified_diff
from hark.tools.files.file_text import FileText, decode_text, is_binary
from hark.tools.files.last_reads import LastReads
from hark.tools.files.nearest_match import explain_mismatch
from hark.tools.files.paths import FilePath, display_path, file_write_effects, resolve_path

MAX_NAMED_LINES = 12
STALE_NOTE = "[the file changed since you last read it; the text to replace was still there, but read the file again]"
OldText = Annotated[str, doc("The text to replace, exactly as in the file. It must be unique unless `all` is set.")]
NewText = Annotated[str, doc("The replacement text; empty to remove the old text.")]
ReplaceAll = Annotated[bool | None, doc("Replace every occurrence instead of a single one.")]


class Replacement(ToolArguments, frozen=True):
    """One replacement of text in a file."""

    old: OldText
    new: NewText
    all: ReplaceAll = None


class EditArguments(ToolArguments, frozen=True):
    """Replace text in a file. `old` must match the file exactly, with its indentation and without line numbers.

    Include enough surrounding lines to make `old` unique, or set `all`. For several replacements give `edits`, which
    are applied in order, all or none.
    """

    path: FilePath
    old: OldText | None = None
    new: NewText | None = None
    all: ReplaceAll = None
    edits: Annotated[tuple[Replacement, ...], doc("Several replacements, used instead of `old` and `new`.")] = ()


class EditTool:
    """The tool that edits files. Its calls never interleave."""

    spec = tool_spec(
        EditArguments, "edit", is_changing=True, predict=lambda arguments: file_write_effects(arguments.path)
    )

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: EditArguments, context: CallContext) -> ToolOutput:
        """Apply all edits or none, and return a diff."""
        edits = _requested_edits(arguments)
        path = resolve_path(arguments.path, context.workspace)
        is_stale = self._reads.is_stale(context, path)
        summary = await self._reads.run_change(partial(_edit_file, path, edits, context.workspace))
        if is_stale:
            return ToolOutput(f"{STALE_NOTE}\n{summary}")
        self._reads.record_version(context, path)
        return ToolOutput(summary)


def _requested_edits(arguments: EditArguments) -> Sequence[Replacement]:
    old, new = arguments.old, arguments.new
    if arguments.edits and (old is not None or new is not None):
        raise ToolError("Give either old and new, or edits, not both.")
    if arguments.edits:
        return arguments.edits
    if old is None or new is None:
        raise ToolError("edit needs either old and new, or edits. Call it again with one of the two.")
    return [Replacement(old, new, arguments.all)]


def _edit_file(path: Path, edits: Sequence[Replacement], workspace: Path) -> str:
    name = display_path(path, workspace)
    content = read_old_content(path, workspace)
    if is_binary(content):
        raise ToolError(f"{name} is a binary file. Change it with a shell command instead.")
    before = decode_text(content)
    text, count = before.text, 0
    for number, edit in enumerate(edits, 1):
        where = f"Nothing was changed. Edit {number} of {len(edits)} failed: " if len(edits) > 1 else ""
        try:
            text, replaced = _apply_edit(text, edit, before, name)
        except ToolError as error:
            raise ToolError(f"{where}{error}") from error
        count += replaced
    if text == before.text:
        raise ToolError("old and new are the same, so nothing would change.")
    apply_changes([FileChange(resolve_target(path, workspace), content, before.encoding.encode(text))], workspace)
    replacements = "1 replacement" if count == 1 else f"{count:,} replacements"
    return f"Edited {name}: {replacements}.\n{unified_diff(before.text, text, name)}"


def _apply_edit(text: str, edit: Replacement, file: FileText, name: str) -> tuple[str, int]:
    """Return the text after the edit, and the number of replacements.

    Models always write plain newlines, so newlines are first converted to the file's line ending. If the converted
    `old`
    is not found, the unconverted texts are used.
    """
    if not edit.old:
        raise ToolError("old is empty. Give the text to replace, or use write to write a whole file.")
    old, new = _convert_newlines(edit.old, file.newline), _convert_newlines(edit.new, file.newline)
    if old not in text:
        old, new = edit.old, edit.new
    count = text.count(old)
    if not count:
        raise ToolError(f"old was not found in {name}. {_explain_missing(text, edit.old)}")
    if count > 1 and not edit.all:
        raise ToolError(
            f"old occurs {count} times in {name}, at lines {_line_numbers(text, old)}. "
            "Include more of the surrounding lines, or set all to true to replace every occurrence."
        )
    return text.replace(old, new), count


def _explain_missing(text: str, old: str) -> str:
    plain_text, plain_old = _convert_newlines(text, "\n"), _convert_newlines(old, "\n")
    if plain_old in plain_text:  # only the line endings differ, so they must be visible
        return explain_mismatch(text.split("\n"), old.split("\n"))
    return explain_mismatch(plain_text.split("\n"), plain_old.split("\n"))


def _convert_newlines(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline)


def _line_numbers(text: str, old: str) -> str:
    lines: list[str] = []
    at, line = text.find(old), 1
    last = 0
    while at >= 0 and len(lines) < MAX_NAMED_LINES:
        line += text.count("\n", last, at)
        lines.append(str(line))
        last, at = at, text.find(old, at + len(old))
    return ", ".join(lines) + (", ..." if at >= 0 else "")
