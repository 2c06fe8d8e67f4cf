"""The tool that keeps the session's list of what is to be done."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Struct

from hark.processes.cookies import this_process
from hark.processes.python.function_worker import run_in_child
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, schema_of, tool_spec
from hark.tools.notes.locked_file import locked, replace_file

ITEMS = 100
ITEM_CHARACTERS = 500


class Status(StrEnum):
    """How far an item is."""

    PENDING = "pending"
    DOING = "doing"
    DONE = "done"


class Item(Struct, frozen=True):
    """One thing to do."""

    text: str
    status: Status = Status.PENDING


_MARKS = {Status.PENDING: "[ ]", Status.DOING: "[>]", Status.DONE: "[x]"}
_LIST = msgspec.json.Decoder(list[Item])


class TodoEntry(ToolArguments, frozen=True):
    """One item, as the model is told to send it."""

    text: str
    status: Literal["pending", "doing", "done"]


class TodoArguments(ToolArguments, frozen=True):
    """Keep the list of what is to be done in this session, for work of three steps or more.

    Send the whole list each time, in order; it takes the place of the one before. Without `items` it returns the list
    as it is. Have one item `doing`, and mark it `done` as soon as it is.
    """

    items: Annotated[
        list[Any] | None,
        doc(
            "The whole list; [] when nothing is to be done any more.", extra_json_schema={"items": schema_of(TodoEntry)}
        ),
    ] = None


class Todo:
    """Keeps each session's list in a file of the home, so that neither a restart nor a summary takes it away."""

    spec = tool_spec(TodoArguments, "todo", grace_seconds=0.5)

    def __init__(self, home: Path) -> None:
        self._home = home

    async def run(self, arguments: TodoArguments, context: CallContext) -> ToolOutput:
        """Keep the list and return it. Cancelling leaves the old list or the new one."""
        path = todo_file(self._home, context.session)
        if arguments.items is None:
            return ToolOutput(as_text(read_items(path)))
        items = _items(arguments.items)
        return await run_in_child(partial(_keep, path, items), context.output, this_process(self._home))


def todo_file(home: Path, session: str) -> Path:
    """Return where a session's list is."""
    return home / "todo" / f"{session}.json"


def read_items(path: Path) -> list[Item]:
    """Return the list that a file has; one that is not there or can't be read has none."""
    try:
        return _LIST.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def as_text(items: list[Item]) -> str:
    """Return the list as a model and a person read it."""
    if not items:
        return "Nothing is to be done."
    lines = [f"{number}. {_MARKS[item.status]} {item.text}" for number, item in enumerate(items, 1)]
    done = sum(item.status is Status.DONE for item in items)
    return "\n".join([*lines, f"{done} of {len(items)} done"])


def _items(given: list[Any]) -> list[Item]:
    if len(given) > ITEMS:
        raise ToolError(f"items: at most {ITEMS}, got {len(given)}. Put what belongs together into one item.")
    items: list[Item] = []
    for number, one in enumerate(given, 1):
        entry = cast("Mapping[str, Any]", one) if isinstance(one, Mapping) else {"text": one}
        text, status = entry.get("text"), entry.get("status") or Status.PENDING
        if not isinstance(text, str) or not text.strip():
            raise ToolError(f"items: number {number} has no text. Each one needs a text and a status.")
        if status not in list(Status):
            known = ", ".join(Status)
            raise ToolError(f"items: the status of number {number} must be one of {known}, got {status}.")
        items.append(Item(" ".join(text.split())[:ITEM_CHARACTERS], Status(status)))
    return items


def _keep(path: Path, items: list[Item]) -> ToolOutput:
    try:
        with locked(path.with_name(".lock")):
            replace_file(path, msgspec.json.encode(items))
    except OSError as error:
        text = f"{as_text(items)}\n[the list could not be kept beyond this conversation: {error}]"
        return ToolOutput(text, is_error=True)
    return ToolOutput(as_text(items))
