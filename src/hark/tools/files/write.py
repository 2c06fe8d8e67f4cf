"""The `write` tool: writes a whole file."""

from functools import partial
from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.atomic_write import apply_changes, read_target
from hark.tools.files.diffs import unified_diff
from hark.tools.files.file_text import FileText, decode_text, encode_new_text, is_binary
from hark.tools.files.last_reads import LastReads
from hark.tools.files.paths import FilePath, display_path, file_write_effects, resolve_path


class WriteArguments(ToolArguments, frozen=True):
    """Write a whole file. It is created, with its folders, or its entire content is replaced.

    To change part of a file, use edit.
    """

    path: FilePath
    content: Annotated[str, doc("The complete text of the file.")]


class WriteTool:
    """The tool that writes whole files. Writes are atomic: a reader sees either the old file or the new one."""

    spec = tool_spec(
        WriteArguments, "write", is_changing=True, predict=lambda arguments: file_write_effects(arguments.path)
    )

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: WriteArguments, context: CallContext) -> ToolOutput:
        """Write the file and return a summary of the change."""
        if arguments.path.endswith("/"):
            raise ToolError(f"{arguments.path} names a folder. Name a file in it; missing folders are created.")
        path = resolve_path(arguments.path, context.workspace)
        text = await self._reads.run_change(partial(_write, path, arguments.content, context.workspace))
        self._reads.record_version(context, path)
        return ToolOutput(text)


def _write(path: Path, content: str, workspace: Path) -> str:
    change = read_target(path, workspace)
    old, new = change.old, encode_new_text(content)
    name = display_path(path, workspace)
    if old == new:
        return f"{name} already has exactly this content; nothing was changed."
    change.new = new
    apply_changes([change], workspace)
    if old is None:
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        return f"Created {name}: {lines:,} {'line' if lines == 1 else 'lines'}, {len(new):,} bytes."
    summary = f"Overwrote {name}: {len(new):,} bytes, previously {len(old):,}."
    if is_binary(old):
        return f"{summary} It was a binary file before."
    before = decode_text(old)
    return "\n".join([summary, *_format_change_notes(before, content), unified_diff(before.text, content, name)])


def _format_change_notes(before: FileText, content: str) -> list[str]:
    notes: list[str] = []
    is_crlf = 2 * before.text.count("\r\n") > before.text.count("\n")
    if is_crlf and "\r\n" not in content:
        notes.append("[its line endings were CRLF before, and are LF now]")
    if note := before.encoding.describe():
        notes.append(f"[it was {note.replace('shown as', 'probably')} before, and is plain UTF-8 now]")
    return notes
