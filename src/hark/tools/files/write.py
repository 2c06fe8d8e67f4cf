"""The tool that writes a whole file."""

from pathlib import Path
from typing import Annotated

from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec
from hark.tools.files.diffs import unified
from hark.tools.files.file_text import FileText, decode, is_binary
from hark.tools.files.last_reads import LastReads
from hark.tools.files.paths import FileName, resolve, shown, writes_to
from hark.tools.files.replace import FileChange, make, old_content, target_of


class WriteArguments(ToolArguments, frozen=True):
    """Write a whole file: it is made, with its folders, or all that was in it is replaced.

    To change a part of a file use edit.
    """

    path: FileName
    content: Annotated[str, doc("All of its text.")]


class Write:
    """Writes files whole: at any instant there is the old one or the new one."""

    spec = tool_spec(WriteArguments, "write", is_changing=True, foresee=lambda arguments: writes_to(arguments.path))

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    async def run(self, arguments: WriteArguments, context: CallContext) -> ToolOutput:
        """Write it, without awaiting anything, and tell what changed."""
        if arguments.path.endswith("/"):
            raise ToolError(f"{arguments.path} names a folder. Name the file in it; folders are made as needed.")
        path = resolve(arguments.path, context.workspace)
        text = _write(path, arguments.content, context.workspace)
        self._reads.note(context, path)
        return ToolOutput(text)


def _write(path: Path, content: str, workspace: Path) -> str:
    target = target_of(path, workspace)
    try:
        new = content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The content has half a surrogate pair in it, which is no character. Leave it out.") from error
    old = old_content(target, workspace) if target.exists() else None
    name = shown(path, workspace)
    if old == new:
        return f"{name} has exactly this content already; nothing was changed."
    make([FileChange(target, old, new)], workspace)
    if old is None:
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        return f"Created {name}: {lines:,} {'line' if lines == 1 else 'lines'}, {len(new):,} bytes."
    told = f"Overwrote {name}: {len(new):,} bytes, before {len(old):,}."
    if is_binary(old):
        return f"{told} It was binary before."
    before = decode(old)
    return "\n".join([told, *_lost(before, content), unified(before.text, content, name)])


def _lost(before: FileText, content: str) -> list[str]:
    notes: list[str] = []
    if before.newline == "\r\n" and "\r\n" not in content:
        notes.append("[its lines ended with CRLF before, and with LF now]")
    if note := before.encoding.note():
        notes.append(f"[it was {note.replace('shown as', 'probably')} before, and is plain UTF-8 now]")
    return notes
