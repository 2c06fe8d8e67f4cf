"""A tool call as an editor shows it: its title, kind, locations and content."""

import json
import re
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
from hark.text.graphemes import shorten

_FILE_MARKERS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ ")
_MOVE_MARKER = "*** Move to: "


@dataclass(slots=True)
class TextChange:
    """A part of a file before and after a change."""

    path: str
    lines: list[str] = field(default_factory=list[str])

    @property
    def old(self) -> str:
        """The text before the change."""
        return self._select_lines("-")

    @property
    def new(self) -> str:
        """The text after the change."""
        return self._select_lines("+")

    def _select_lines(self, marker: str) -> str:
        return "".join(f"{line[1:]}\n" for line in self.lines if line[:1] in (marker, " ", ""))


def parse_hunks(text: str) -> list[TextChange]:
    """Return the hunks of a unified diff or of a `*** Begin Patch` text, or an empty list for other texts."""
    return [hunk for hunk in _iterate_hunks(text) if any(line[:1] in ("+", "-") for line in hunk.lines)]


def _iterate_hunks(text: str) -> Iterator[TextChange]:
    hunk: TextChange | None = None
    for line in text.split("\n"):
        heading = next((marker for marker in _FILE_MARKERS if line.startswith(marker)), None)
        if heading is not None:
            if hunk is not None:
                yield hunk
            path = line.removeprefix(heading).split("\t")[0].strip()
            hunk = TextChange(path.removeprefix("b/") if heading == "+++ " else path)
        elif hunk is None or line.startswith(("--- ", "\\", _MOVE_MARKER)):
            continue
        elif line.startswith("@@"):
            yield hunk
            hunk = TextChange(hunk.path)
        elif line[:1] in ("+", "-", " "):
            hunk.lines.append(line)
    if hunk is not None:
        yield hunk


_PLAN_STATUSES: dict[str, PlanEntryStatus] = {"pending": "pending", "doing": "in_progress", "done": "completed"}


MAX_TITLE_CHARACTERS = 200
MAX_SHOWN_CHARACTERS = 60_000

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
_MAIN_ARGUMENTS = ("command", "pattern", "path", "query", "url", "goal", "question", "action", "code", "name")


class EditorToolCall:
    """A tool call in an editor, from the model's request to its result."""

    def __init__(self, call_id: str, tool: str, arguments: str, folder: str) -> None:
        self.call_id = call_id
        self._tool = tool
        self._arguments = _decode_arguments(arguments)
        self._folder = Path(folder)

    @property
    def title(self) -> str:
        """A one-line description of the call."""
        subject = next((str(self._arguments[key]) for key in _MAIN_ARGUMENTS if self._arguments.get(key)), "")
        line = shorten(" ".join(subject.split()), MAX_TITLE_CHARACTERS)
        if self._tool == "shell" and line:
            return f"`{line}`"
        return f"{self._tool}: {line}" if line else self._tool

    def start_update(self, status: ToolCallStatus) -> ToolCallStart:
        """Return the update that first shows the call."""
        return ToolCallStart(session_update="tool_call", status=status, **self._describe())

    def permission_update(self) -> ToolCallUpdate:
        """Return the call as part of a permission request."""
        return ToolCallUpdate(status="pending", **self._describe())

    def running_update(self) -> ToolCallProgress:
        """Return the update that marks the call as running."""
        return update_tool_call(self.call_id, status="in_progress")

    def output_update(self, text: str) -> ToolCallProgress:
        """Return the update with the output so far."""
        return update_tool_call(self.call_id, content=[fence_text(text)])

    def end_update(self, text: str, effect: Effect, *, is_error: bool) -> ToolCallProgress:
        """Return the update with the result. File changes are shown as diffs instead of text."""
        is_done = effect in (Effect.COMPLETED, Effect.CONTINUES) and not is_error
        diffs = self._parse_diffs(text) or self._predicted_diffs() if is_done else []
        return update_tool_call(
            self.call_id,
            status="completed" if is_done else "failed",
            content=diffs or ([fence_text(text)] if text else []),
            raw_output={"effect": str(effect)},
        )

    def _describe(self) -> dict[str, Any]:
        return {
            "tool_call_id": self.call_id,
            "title": self.title,
            "kind": _KINDS.get(self._tool, "other"),
            "content": self._predicted_diffs() or None,
            "locations": self._locations() or None,
            "raw_input": self._arguments,
        }

    def _locations(self) -> list[ToolCallLocation]:
        if _KINDS.get(self._tool) not in ("read", "edit", "search"):
            return []
        path, line = self._arguments.get("path"), self._arguments.get("offset")
        paths = [path] if isinstance(path, str) else [hunk.path for hunk in parse_hunks(self._text_argument("patch"))]
        return [
            ToolCallLocation(path=self._absolute_path(one), line=line if isinstance(line, int) and line >= 0 else None)
            for one in dict.fromkeys(paths)
        ]

    def _predicted_diffs(self) -> list[ToolCallContentVariant]:
        """Return the file changes that follow from the call's arguments."""
        path = self._absolute_path(self._text_argument("path"))
        match self._tool:
            case "write":
                return [tool_diff_content(path, self._text_argument("content"))]
            case "edit":
                return [tool_diff_content(path, new, old) for old, new in self._replacements()]
            case "patch":
                return self._parse_diffs(self._text_argument("patch"))
            case _:
                return []

    def _parse_diffs(self, text: str) -> list[ToolCallContentVariant]:
        """Return the file changes in a diff."""
        if _KINDS.get(self._tool) != "edit":
            return []
        hunks = parse_hunks(text)
        return [tool_diff_content(self._absolute_path(hunk.path), hunk.new, hunk.old or None) for hunk in hunks]

    def _replacements(self) -> list[tuple[str, str]]:
        several: object = self._arguments.get("edits")
        edits = cast("list[object]", several) if isinstance(several, list) and several else [self._arguments]
        items = [cast("Arguments", edit) for edit in edits if isinstance(edit, dict)]
        return [(str(edit.get("old", "")), str(edit.get("new", ""))) for edit in items]

    def _text_argument(self, key: str) -> str:
        value: object = self._arguments.get(key)
        return value if isinstance(value, str) else ""

    def _absolute_path(self, path: str) -> str:
        return str(self._folder / path)


def fence_text(text: str) -> ContentToolCallContent:
    """Return text in a code fence, so that the editor doesn't render Markdown. Only the end of a long text is shown."""
    hidden = len(text) - MAX_SHOWN_CHARACTERS
    if hidden > 0:
        text = f"[{hidden:,} earlier characters are not shown]\n{text[-MAX_SHOWN_CHARACTERS:]}"
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return tool_content(text_block(f"{fence}\n{text.rstrip()}\n{fence}"))


def build_plan_update(tool: str, arguments: str) -> AgentPlanUpdate | None:
    """Return a call's to-do list as an editor plan, which replaces the previous plan. Return None without a list."""
    items: object = _decode_arguments(arguments).get("items") if tool == "todo" else None
    if not isinstance(items, list):
        return None
    entries = [cast("Arguments", item) for item in cast("list[object]", items) if isinstance(item, dict)]
    return update_plan(
        plan_entry(str(item.get("text", "")), status=_PLAN_STATUSES.get(str(item.get("status")), "pending"))
        for item in entries
    )


def _decode_arguments(arguments: str) -> Arguments:
    try:
        value: object = json.loads(arguments)
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        return {}
    return cast("Arguments", value) if isinstance(value, dict) else {}
