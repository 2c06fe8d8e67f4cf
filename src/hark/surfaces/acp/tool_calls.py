"""A tool call as an editor shows it: its title, kind, places and content."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
)

from hark.protocol.messages import Effect
from hark.surfaces.acp.patch_changes import read_hunks

TITLE_CHARACTERS = 200
SHOWN_CHARACTERS = 60_000

Arguments = dict[str, Any]
Content = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

_KINDS: dict[str, ToolKind] = {
    "read": "read",
    "view_image": "read",
    "list": "read",
    "skills": "read",
    "write": "edit",
    "edit": "edit",
    "patch": "edit",
    "shell": "execute",
    "process": "execute",
    "python": "execute",
    "search": "search",
    "recall": "search",
    "fetch": "fetch",
    "web_search": "fetch",
    "todo": "think",
    "delegate": "think",
    "memory": "think",
}
_SUBJECTS = ("command", "pattern", "path", "query", "url", "goal", "question", "action", "code", "name")


class ShownCall:
    """One call, from what the model asked for to what came of it."""

    def __init__(self, name: str, tool: str, arguments: str, folder: str) -> None:
        self.name = name
        self._tool = tool
        self._arguments = _decoded(arguments)
        self._folder = Path(folder)

    @property
    def title(self) -> str:
        """What it is, in a line."""
        subject = next((str(self._arguments[key]) for key in _SUBJECTS if self._arguments.get(key)), "")
        line = " ".join(subject.split())
        line = line if len(line) <= TITLE_CHARACTERS else f"{line[:TITLE_CHARACTERS]}…"
        if self._tool == "shell" and line:
            return f"`{line}`"
        return f"{self._tool}: {line}" if line else self._tool

    def begin(self, status: ToolCallStatus) -> ToolCallStart:
        """Return the first that is shown of it."""
        return ToolCallStart(
            session_update="tool_call",
            tool_call_id=self.name,
            title=self.title,
            kind=_KINDS.get(self._tool, "other"),
            status=status,
            content=self._foreseen() or None,
            locations=self._locations() or None,
            raw_input=self._arguments,
        )

    def asked(self) -> ToolCallUpdate:
        """Return it as a question about it names it."""
        return ToolCallUpdate(
            tool_call_id=self.name,
            title=self.title,
            kind=_KINDS.get(self._tool, "other"),
            status="pending",
            content=self._foreseen() or None,
            locations=self._locations() or None,
            raw_input=self._arguments,
        )

    def started(self) -> ToolCallProgress:
        """Return that it runs."""
        return ToolCallProgress(session_update="tool_call_update", tool_call_id=self.name, status="in_progress")

    def printed(self, text: str) -> ToolCallProgress:
        """Return what it has printed until now."""
        return ToolCallProgress(session_update="tool_call_update", tool_call_id=self.name, content=[fenced(text)])

    def ended(self, text: str, effect: Effect, *, is_error: bool) -> ToolCallProgress:
        """Return what came of it. What was done to files is shown as such, in place of the words about it."""
        is_done = effect is Effect.COMPLETED and not is_error
        changes = self._changes(text) or self._foreseen() if is_done else []
        return ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=self.name,
            status="completed" if is_done else "failed",
            content=changes or ([fenced(text)] if text else []),
            raw_output={"effect": str(effect)},
        )

    def _locations(self) -> list[ToolCallLocation]:
        if _KINDS.get(self._tool) not in ("read", "edit", "search"):
            return []
        path, line = self._arguments.get("path"), self._arguments.get("offset")
        paths = [path] if isinstance(path, str) else [hunk.path for hunk in read_hunks(self._text("patch"))]
        return [
            ToolCallLocation(path=self._place(one), line=line if isinstance(line, int) and line >= 0 else None)
            for one in dict.fromkeys(paths)
        ]

    def _foreseen(self) -> list[Content]:
        """Return what its arguments say that it changes."""
        path = self._place(self._text("path"))
        match self._tool:
            case "write":
                return [_diff(path, None, self._text("content"))]
            case "edit":
                return [_diff(path, old, new) for old, new in self._replacements()]
            case "patch":
                return self._changes(self._text("patch"))
            case _:
                return []

    def _changes(self, text: str) -> list[Content]:
        """Return the changes that a diff tells."""
        if _KINDS.get(self._tool) != "edit":
            return []
        return [_diff(self._place(hunk.path), hunk.old or None, hunk.new) for hunk in read_hunks(text)]

    def _replacements(self) -> list[tuple[str, str]]:
        several: object = self._arguments.get("edits")
        edits = cast("list[object]", several) if isinstance(several, list) and several else [self._arguments]
        given = [cast("Arguments", edit) for edit in edits if isinstance(edit, dict)]
        return [(str(edit.get("old", "")), str(edit.get("new", ""))) for edit in given]

    def _text(self, key: str) -> str:
        value: object = self._arguments.get(key)
        return value if isinstance(value, str) else ""

    def _place(self, path: str) -> str:
        return str(self._folder / path)


def fenced(text: str) -> ContentToolCallContent:
    """Return text as it is: the editor would take it for Markdown. Of a long one the end is shown."""
    if len(text) > SHOWN_CHARACTERS:
        text = f"[{len(text) - SHOWN_CHARACTERS:,} characters before this are not shown]\n{text[-SHOWN_CHARACTERS:]}"
    fence = "```"
    while fence in text:
        fence += "`"
    return ContentToolCallContent(
        type="content", content=TextContentBlock(type="text", text=f"{fence}\n{text.rstrip()}\n{fence}")
    )


def todo_items(tool: str, arguments: str) -> Sequence[Arguments] | None:
    """Return the list of things to do that a call keeps; None when it keeps none."""
    items: object = _decoded(arguments).get("items") if tool == "todo" else None
    if not isinstance(items, list):
        return None
    return [cast("Arguments", item) for item in cast("list[object]", items) if isinstance(item, dict)]


def _decoded(arguments: str) -> Arguments:
    try:
        value: object = json.loads(arguments)
    except ValueError:
        return {}
    return cast("Arguments", value) if isinstance(value, dict) else {}


def _diff(path: str, old: str | None, new: str) -> FileEditToolCallContent:
    return FileEditToolCallContent(type="diff", path=path, old_text=old, new_text=new)
