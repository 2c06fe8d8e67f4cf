"""The `edit` tool: replaces exact text in a file."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.atomic_write import apply_changes, read_target
from hark.tools.files.diffs import common_prefix_length, unified_diff
from hark.tools.files.file_text import PlainText, Splice, decode_for_edit, encode_new_text, plain_newlines
from hark.tools.files.last_reads import LastReads
from hark.tools.files.nearest_match import MAX_NAMED_LINES, explain_mismatch, find_overlapping, name_lines
from hark.tools.files.paths import FilePath, display_path, file_write_effects, missing_file_text, resolve_path

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
    change = read_target(path, workspace)
    if change.old is None:
        raise ToolError(missing_file_text(path, workspace))
    before = decode_for_edit(change.old, name)
    text, count = before.text, 0
    for number, edit in enumerate(edits, 1):
        where = f"Nothing was changed. Edit {number} of {len(edits)} failed: " if len(edits) > 1 else ""
        try:
            text, replaced = _apply_edit(text, edit, name)
        except ToolError as error:
            raise ToolError(f"{where}{error}") from error
        count += replaced
    if text == before.text:
        raise ToolError("old and new are the same, so nothing would change.")
    change.new = before.encoding.encode(text)
    apply_changes([change], workspace)
    replacements = "1 replacement" if count == 1 else f"{count:,} replacements"
    return f"Edited {name}: {replacements}.\n{unified_diff(before.text, text, name)}"


def _apply_edit(raw: str, edit: Replacement, name: str) -> tuple[str, int]:
    """Return the text after the edit, and the number of replacements.

    Models always write plain newlines, so they match any line ending, and new lines get the ending of their
    neighbours. Only an `old` with carriage returns that the file contains is used as it is, together with `new`.
    """
    if not edit.old:
        raise ToolError("old is empty. Give the text to replace, or use write to write a whole file.")
    encode_new_text(edit.old + edit.new)
    is_literal = "\r" in edit.old and edit.old in raw
    plain = PlainText(raw, is_literal=is_literal)
    old, new = (edit.old, edit.new) if is_literal else (plain_newlines(edit.old), plain_newlines(edit.new))
    found = find_overlapping(plain.text, old)
    if not found:
        raise ToolError(f"old was not found in {name}. {explain_mismatch(plain.text, old)}")
    if not edit.all and len(found) > 1:
        lines = [plain.text.count("\n", 0, at) for at in found]
        count = len(found) if len(found) <= MAX_NAMED_LINES else f"more than {MAX_NAMED_LINES}"
        raise ToolError(
            f"old occurs {count} times in {name}, at lines {name_lines(lines)}. "
            "Include more of the surrounding lines, or set all to true to replace every occurrence."
        )
    # Only the differing part is replaced, so that equal lines around it keep their line endings.
    start = common_prefix_length(old, new)
    end = common_prefix_length(old[start:][::-1], new[start:][::-1])
    changed = new[start : len(new) - end]
    offsets = [match.start() for match in re.finditer(re.escape(old), plain.text)]
    splices = [Splice(at + start, at + len(old) - end, changed) for at in offsets]
    return plain.replace(splices), len(offsets)
