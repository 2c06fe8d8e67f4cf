"""The tool that replaces exact text in a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.diffs import unified
from hark.tools.files.file_text import FileText, decode, is_binary
from hark.tools.files.last_reads import LastReads
from hark.tools.files.nearest_match import explain
from hark.tools.files.paths import FileName, resolve, shown, writes_to
from hark.tools.files.replace import FileChange, make, old_content, target_of

NAMED_PLACES = 12
STALE = "[something else changed the file since you last read it; the text was still there, but read it again]"
OldText = Annotated[str, doc("The text to replace, exactly as it is in the file, and only once in it.")]
NewText = Annotated[str, doc("What to put in its place; empty to remove it.")]
ReplaceAll = Annotated[bool | None, doc("Replace it everywhere, not once.")]


class Replacement(ToolArguments, frozen=True):
    """One edit."""

    old: OldText
    new: NewText
    all: ReplaceAll = None


class EditArguments(ToolArguments, frozen=True):
    """Replace text in a file: `old`, exactly as it is there with its indentation (without line numbers), by `new`.

    Several places at once: give `edits`, which are made in order, all or none. It needs enough lines around it to be
    unique, or `all`.
    """

    path: FileName
    old: OldText | None = None
    new: NewText | None = None
    all: ReplaceAll = None
    edits: Annotated[tuple[Replacement, ...], doc("Several replacements, instead of `old` and `new`.")] = ()


class EditTool:
    """Edits files: a file is read, checked and written without awaiting in between, so that calls can't mix."""

    spec = tool_spec(EditArguments, "edit", is_changing=True, foresee=lambda arguments: writes_to(arguments.path))

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: EditArguments, context: CallContext) -> ToolOutput:
        """Make all the edits or none, and return a diff."""
        edits = _edits(arguments)
        path = resolve(arguments.path, context.workspace)
        is_stale = self._reads.is_stale(context, path)
        told = _edit(path, edits, context.workspace)
        if is_stale:
            return ToolOutput(f"{STALE}\n{told}")
        self._reads.note(context, path)
        return ToolOutput(told)


def _edits(arguments: EditArguments) -> Sequence[Replacement]:
    old, new = arguments.old, arguments.new
    if arguments.edits and (old is not None or new is not None):
        raise ToolError("Give either old and new, or edits, not both.")
    if arguments.edits:
        return arguments.edits
    if old is None or new is None:
        raise ToolError("edit needs old and new, or edits: call it again with them.")
    return [Replacement(old, new, arguments.all)]


def _edit(path: Path, edits: Sequence[Replacement], workspace: Path) -> str:
    name = shown(path, workspace)
    content = old_content(path, workspace)
    if is_binary(content):
        raise ToolError(f"{name} is binary, not text. Change it with a program, through the shell.")
    before = decode(content)
    text, count = before.text, 0
    for number, edit in enumerate(edits, 1):
        where = f"Nothing was changed, for edit {number} of {len(edits)} does not fit: " if len(edits) > 1 else ""
        try:
            text, replaced = _replaced(text, edit, before, name)
        except ToolError as refused:
            raise ToolError(f"{where}{refused}") from refused
        count += replaced
    if text == before.text:
        raise ToolError("old and new are the same: nothing would change.")
    make([FileChange(target_of(path, workspace), content, before.encoding.encode(text))], workspace)
    places = "1 replacement" if count == 1 else f"{count:,} replacements"
    return f"Edited {name}: {places}.\n{unified(before.text, text, name)}"


def _replaced(text: str, edit: Replacement, file: FileText, name: str) -> tuple[str, int]:
    """Return the text after the edit, and how many places were replaced.

    A model writes plain line ends, whatever the file has: its texts are taken to mean the file's own, unless they
    are found as they are.
    """
    if not edit.old:
        raise ToolError("old is empty. Name the text that new goes in place of; to write a whole file use write.")
    old, new = _with_newline(edit.old, file.newline), _with_newline(edit.new, file.newline)
    if old not in text:
        old, new = edit.old, edit.new
    count = text.count(old)
    if not count:
        raise ToolError(f"old is not in {name}. {_why(text, edit.old)}")
    if count > 1 and not edit.all:
        raise ToolError(
            f"old is {count} times in {name}, at lines {_places(text, old)}. "
            "Give more of the lines around the one that you mean, or all: true to replace each."
        )
    return text.replace(old, new), count


def _why(text: str, old: str) -> str:
    plain_text, plain_old = _with_newline(text, "\n"), _with_newline(old, "\n")
    if plain_old in plain_text:  # so only the line ends differ: they must be seen
        return explain(text.split("\n"), old.split("\n"))
    return explain(plain_text.split("\n"), plain_old.split("\n"))


def _with_newline(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline)


def _places(text: str, old: str) -> str:
    lines: list[str] = []
    at, line = text.find(old), 1
    last = 0
    while at >= 0 and len(lines) < NAMED_PLACES:
        line += text.count("\n", last, at)
        lines.append(str(line))
        last, at = at, text.find(old, at + len(old))
    return ", ".join(lines) + (", ..." if at >= 0 else "")
