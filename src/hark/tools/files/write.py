"""The tool that writes a whole file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hark.protocol.tool import CallContext, ToolOutput, ToolSpec
from hark.tools.arguments import check
from hark.tools.files.diffs import unified
from hark.tools.files.errors import ToolRefused, refuse_if
from hark.tools.files.file_text import FileText, decode, is_binary
from hark.tools.files.last_reads import LastReads
from hark.tools.files.paths import foresee_path, resolve, shown
from hark.tools.files.replace import FileChange, HalfDone, content_of, make, target_of

_SPEC = ToolSpec(
    name="write",
    description=(
        "Write a whole file: it is made, with its folders, or all that was in it is replaced. "
        "To change a part of a file use edit."
    ),
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace or absolute."},
            "content": {"type": "string", "description": "All of its text."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    is_changing=True,
    foresee=foresee_path,
)


class Write:
    """Writes files whole: at any instant there is the old one or the new one."""

    def __init__(self, reads: LastReads) -> None:
        self._reads = reads

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Write it, without awaiting anything, and tell what changed."""
        try:
            refuse_if(check(_SPEC, arguments))
            refuse_if(_folder_named(arguments["path"]))
            path = resolve(arguments["path"], context.workspace)
            text = _write(path, arguments["content"], context.workspace)
        except (ToolRefused, HalfDone) as problem:
            return problem.as_output()
        self._reads.note(context, path)
        return ToolOutput(text)


def _folder_named(path: str) -> str | None:
    return f"{path} names a folder. Name the file in it; folders are made as needed." if path.endswith("/") else None


def _write(path: Path, content: str, workspace: Path) -> str:
    target = target_of(path, workspace)
    try:
        new = content.encode()
    except UnicodeEncodeError as error:
        raise ToolRefused(
            "The content has half a surrogate pair in it, which is no character. Leave it out."
        ) from error
    old = content_of(target, workspace) if target.exists() else None
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
