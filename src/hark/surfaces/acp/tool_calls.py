"""A tool call as an editor shows it: its title, kind, places and content."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import plan_entry, text_block, tool_content, tool_diff_content, update_plan, update_tool_call
from acp.helpers import ToolCallContentVariant
from acp.schema import (
    AgentPlanUpdate,
    ContentToolCallContent,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolCallUpdate,
    ToolKind,
)

from hark.protocol.messages import Effect

_FILES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ ")
_MOVED = "*** Move to: "


@dataclass(slots=True)
class TextChange:
    """A piece of a file before and after."""

    path: str
    lines: list[str] = field(default_factory=list[str])

    @property
    def old(self) -> str:
        """The text before."""
        return self._side("-")

    @property
    def new(self) -> str:
        """The text after."""
        return self._side("+")

    def _side(self, sign: str) -> str:
        return "".join(f"{line[1:]}\n" for line in self.lines if line[:1] in (sign, " ", ""))


def read_hunks(text: str) -> list[TextChange]:
    """Return the pieces of a unified diff or of a `*** Begin Patch`; none when the text is neither."""
    return [hunk for hunk in _hunks(text) if any(line[:1] in ("+", "-") for line in hunk.lines)]


def _hunks(text: str) -> Iterator[TextChange]:
    hunk: TextChange | None = None
    for line in text.split("\n"):
        heading = next((mark for mark in _FILES if line.startswith(mark)), None)
        if heading is not None:
            if hunk is not None:
                yield hunk
            path = line.removeprefix(heading).split("\t")[0].strip()
            hunk = TextChange(path.removeprefix("b/") if heading == "+++ " else path)
        elif hunk is None or line.startswith(("--- ", "\\", _MOVED)):
            continue
        elif line.startswith("@@"):
            yield hunk
            hunk = TextChange(hunk.path)
        elif line[:1] in ("+", "-", " "):
            hunk.lines.append(line)
    if hunk is not None:
        yield hunk


_STATUSES: dict[str, PlanEntryStatus] = {"pending": "pending", "doing": "in_progress", "done": "completed"}


TITLE_CHARACTERS = 200
SHOWN_CHARACTERS = 60_000

Arguments = dict[str, Any]

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
        return ToolCallStart(session_update="tool_call", status=status, **self._described())

    def asked(self) -> ToolCallUpdate:
        """Return it as a question about it names it."""
        return ToolCallUpdate(status="pending", **self._described())

    def started(self) -> ToolCallProgress:
        """Return that it runs."""
        return update_tool_call(self.name, status="in_progress")

    def printed(self, text: str) -> ToolCallProgress:
        """Return what it has printed until now."""
        return update_tool_call(self.name, content=[fenced(text)])

    def ended(self, text: str, effect: Effect, *, is_error: bool) -> ToolCallProgress:
        """Return what came of it. What was done to files is shown as such, in place of the words about it."""
        is_done = effect is Effect.COMPLETED and not is_error
        changes = self._changes(text) or self._foreseen() if is_done else []
        return update_tool_call(
            self.name,
            status="completed" if is_done else "failed",
            content=changes or ([fenced(text)] if text else []),
            raw_output={"effect": str(effect)},
        )

    def _described(self) -> dict[str, Any]:
        return {
            "tool_call_id": self.name,
            "title": self.title,
            "kind": _KINDS.get(self._tool, "other"),
            "content": self._foreseen() or None,
            "locations": self._locations() or None,
            "raw_input": self._arguments,
        }

    def _locations(self) -> list[ToolCallLocation]:
        if _KINDS.get(self._tool) not in ("read", "edit", "search"):
            return []
        path, line = self._arguments.get("path"), self._arguments.get("offset")
        paths = [path] if isinstance(path, str) else [hunk.path for hunk in read_hunks(self._text("patch"))]
        return [
            ToolCallLocation(path=self._place(one), line=line if isinstance(line, int) and line >= 0 else None)
            for one in dict.fromkeys(paths)
        ]

    def _foreseen(self) -> list[ToolCallContentVariant]:
        """Return what its arguments say that it changes."""
        path = self._place(self._text("path"))
        match self._tool:
            case "write":
                return [tool_diff_content(path, self._text("content"))]
            case "edit":
                return [tool_diff_content(path, new, old) for old, new in self._replacements()]
            case "patch":
                return self._changes(self._text("patch"))
            case _:
                return []

    def _changes(self, text: str) -> list[ToolCallContentVariant]:
        """Return the changes that a diff tells."""
        if _KINDS.get(self._tool) != "edit":
            return []
        return [tool_diff_content(self._place(hunk.path), hunk.new, hunk.old or None) for hunk in read_hunks(text)]

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
    return tool_content(text_block(f"{fence}\n{text.rstrip()}\n{fence}"))


def plan_in(tool: str, arguments: str) -> AgentPlanUpdate | None:
    """Return the list of things to do that a call keeps, as an editor's plan; None when it keeps none.

    It takes the place of the one before.
    """
    items: object = _decoded(arguments).get("items") if tool == "todo" else None
    if not isinstance(items, list):
        return None
    given = [cast("Arguments", item) for item in cast("list[object]", items) if isinstance(item, dict)]
    return update_plan(
        plan_entry(str(item.get("text", "")), status=_STATUSES.get(str(item.get("status")), "pending"))
        for item in given
    )


def _decoded(arguments: str) -> Arguments:
    try:
        value: object = json.loads(arguments)
    except ValueError:
        return {}
    return cast("Arguments", value) if isinstance(value, dict) else {}
