"""The `todo` tool: stores the session's to-do list."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Struct

from hark.disk.file_lock import lock_file
from hark.disk.private_files import replace_file
from hark.processes.cookies import current_owner
from hark.processes.python.function_worker import run_in_child
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, build_schema, doc, tool_spec

MAX_ITEMS = 100
MAX_ITEM_CHARACTERS = 500


class TodoStatus(StrEnum):
    """The status of a to-do item."""

    PENDING = "pending"
    DOING = "doing"
    DONE = "done"


class TodoItem(Struct, frozen=True):
    """One item of a to-do list."""

    text: str
    status: TodoStatus = TodoStatus.PENDING


_CHECKBOXES = {TodoStatus.PENDING: "[ ]", TodoStatus.DOING: "[>]", TodoStatus.DONE: "[x]"}
_ITEMS_DECODER = msgspec.json.Decoder(list[TodoItem])


class TodoEntry(ToolArguments, frozen=True):
    """One to-do item in the form that the model sends."""

    text: str
    status: Literal["pending", "doing", "done"]


class TodoArguments(ToolArguments, frozen=True):
    """Maintain this session's to-do list, for work of three steps or more.

    Send the whole list each time, in order: it replaces the previous list. Without `items`, the tool returns the
    current list. Have one item `doing`, and mark it `done` as soon as it is finished.
    """

    items: Annotated[
        list[Any] | None,
        doc("The whole list; [] when nothing is left to do.", extra_json_schema={"items": build_schema(TodoEntry)}),
    ] = None


class TodoTool:
    """The tool that stores each session's to-do list in a file, so that it survives restarts and compaction."""

    spec = tool_spec(TodoArguments, "todo", grace_seconds=0.5)

    def __init__(self, home: Path) -> None:
        self._home = home

    async def run(self, arguments: TodoArguments, context: CallContext) -> ToolOutput:
        """Store the list and return it. Cancelling leaves either the old list or the new one."""
        path = todo_file(self._home, context.session)
        if arguments.items is None:
            return ToolOutput(format_items(read_items(path)))
        items = _parse_items(arguments.items)
        return await run_in_child(partial(_save, path, items), context.output, current_owner(self._home))


def todo_file(home: Path, session: str) -> Path:
    """Return the path of a session's to-do list."""
    return home / "todo" / f"{session}.json"


def read_items(path: Path) -> list[TodoItem]:
    """Return the items in a file, or an empty list if the file is missing or unreadable."""
    try:
        return _ITEMS_DECODER.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def format_items(items: list[TodoItem]) -> str:
    """Format the list as text for the model and the user."""
    if not items:
        return "The to-do list is empty."
    lines = [f"{number}. {_CHECKBOXES[item.status]} {item.text}" for number, item in enumerate(items, 1)]
    done = sum(item.status is TodoStatus.DONE for item in items)
    return "\n".join([*lines, f"{done} of {len(items)} done"])


def _parse_items(given: list[Any]) -> list[TodoItem]:
    if len(given) > MAX_ITEMS:
        raise ToolError(f"items: at most {MAX_ITEMS}, got {len(given)}. Combine related items.")
    items: list[TodoItem] = []
    for number, one in enumerate(given, 1):
        entry = cast("Mapping[str, Any]", one) if isinstance(one, Mapping) else {"text": one}
        text, status = entry.get("text"), entry.get("status") or TodoStatus.PENDING
        if not isinstance(text, str) or not text.strip():
            raise ToolError(f"items: item {number} has no text. Each item needs a text and a status.")
        if status not in list(TodoStatus):
            known = ", ".join(TodoStatus)
            raise ToolError(f"items: the status of item {number} must be one of {known}, got {status}.")
        items.append(TodoItem(" ".join(text.split())[:MAX_ITEM_CHARACTERS], TodoStatus(status)))
    return items


def _save(path: Path, items: list[TodoItem]) -> ToolOutput:
    try:
        with lock_file(path.with_name(".lock")):
            replace_file(path, msgspec.json.encode(items))
    except OSError as error:
        text = f"{format_items(items)}\n[the list could not be saved to disk: {error}]"
        return ToolOutput(text, is_error=True)
    return ToolOutput(format_items(items))
