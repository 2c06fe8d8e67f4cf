"""Examples of every value that Hark stores as JSON, as written by an earlier version.

`stored_values.jsonl` has one example in each line. For a new struct or field, append examples with
`python -m tests.protocol.stored_values`. Never change or remove a line: there are homes with such values.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import inspect

from hark.app.pairing import PairedAccount, PairingRecords, PairingRequest
from hark.app.sessions.editor_session_file import SessionFolder
from hark.app.voice import SpeechPreference
from hark.mcp.auth import StoredLogin
from hark.protocol.chat import Address, Author, IncomingEvent
from hark.protocol.commands import Command, Delivery, ShownText
from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Effect, Reasoning, UserMessage
from hark.protocol.outcomes import ErrorInfo, Outcome, Span, Timings, Usage
from hark.protocol.records import AnyRecord
from hark.protocol.rules import ApprovalMode
from hark.protocol.schedules import Run, RunState, Schedule
from hark.surfaces.discord.position_tracker import ChatPosition, GatewayPosition
from hark.surfaces.matrix.sync_state import SyncFile
from hark.tools.notes.todo import TodoItem, TodoStatus
from hark.voice.pending_recordings import _RecordingMetadata as RecordingMetadata  # pyright: ignore[reportPrivateUsage]

FILE = Path(__file__).with_suffix(".jsonl")
# The types of the values, by the name in the examples.
ROOTS: dict[str, Any] = {
    "journal record": AnyRecord,
    "inbox command": Command,
    "chat event": IncomingEvent,
    "chat address": Address,
    "schedule": Schedule,
    "paired accounts": PairingRecords,
    "editor session": SessionFolder,
    "speech preference": SpeechPreference,
    "recording": RecordingMetadata,
    "MCP login": StoredLogin,
    "Discord position": GatewayPosition,
    "Matrix position": SyncFile,
    "to-do item": TodoItem,
    # Parts of these values.
    "message": UserMessage | AssistantMessage | CallResult,
    "attachment": Attachment,
    "call": Call,
    "reasoning": Reasoning,
    "outcome": Outcome,
    "error": ErrorInfo,
    "usage": Usage,
    "timings": Timings,
    "timeline span": Span,
    "shown text": ShownText,
    "chat author": Author,
    "scheduled run": Run,
    "pairing request": PairingRequest,
    "paired account": PairedAccount,
    "Discord chat position": ChatPosition,
    "delivery": Delivery,
    "approval mode": ApprovalMode,
    "effect": Effect,
    "run state": RunState,
    "to-do status": TodoStatus,
}


class Example(msgspec.Struct, frozen=True):
    """A stored value: the text in the file or database, and its meaning with all default values."""

    root: str
    stored: msgspec.Raw
    meaning: Any


def load_examples() -> list[Example]:
    lines = FILE.read_bytes().splitlines() if FILE.exists() else []
    return [msgspec.json.decode(line, type=Example) for line in lines]


def explain(value: Any) -> Any:
    """Return a decoded value as plain data, including the default values that are not stored."""
    if isinstance(value, msgspec.Struct):
        kind = type(value)
        names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        return {"": kind.__struct_config__.tag, **{stored: explain(getattr(value, name)) for stored, name in names}}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): explain(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [explain(item) for item in cast("Sequence[Any]", value)]
    return value


def is_contained(part: Any, whole: Any) -> bool:
    """Return whether plain data equals other data that may have more fields."""
    if type(part) is not type(whole):
        return False
    if isinstance(part, dict):
        items = cast("dict[str, Any]", part).items()
        return all(key in whole and is_contained(item, whole[key]) for key, item in items)
    if isinstance(part, list):
        items = cast("list[Any]", part)
        return len(items) == len(whole) and all(map(is_contained, items, whole))
    return bool(part == whole)


def walk_types(kind: inspect.Type, seen: set[Any]) -> Iterator[inspect.StructType | inspect.EnumType]:
    """Yield the structs and enums that a stored value of this type may contain."""
    if isinstance(kind, inspect.StructType | inspect.EnumType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
        yield kind
    inner: list[inspect.Type] = []
    match kind:
        case inspect.StructType(fields=fields):
            inner = [field.type for field in fields]
        case inspect.UnionType(types=types):
            inner = list(types)
        case inspect.TupleType(item_types=types):
            inner = list(types)
        case inspect.DictType(value_type=value):
            inner = [value]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            inner = [item]
        case _:
            pass
    for one in inner:
        yield from walk_types(one, seen)


def make_example(kind: inspect.Type, default: object, *, is_full: bool) -> Any:
    """Return the stored form of a value: with all fields set, or only with required fields."""
    match kind:
        case inspect.StructType(fields=fields, tag=tag, tag_field=tag_field):
            chosen = [field for field in fields if is_full or field.required]
            example = {field.encode_name: make_example(field.type, field.default, is_full=is_full) for field in chosen}
            return {**({tag_field: tag} if tag_field else {}), **example}
        case inspect.EnumType(cls=cls):
            return next(member.value for member in cls if member is not default)
        case inspect.LiteralType(values=values):
            return next(value for value in values if value != default)
        case inspect.UnionType(types=types):
            return make_example(
                next(one for one in types if not isinstance(one, inspect.NoneType)), default, is_full=is_full
            )
        case inspect.TupleType(item_types=types):
            return [make_example(one, None, is_full=is_full) for one in types]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [make_example(item, None, is_full=is_full)] if is_full else []
        case inspect.DictType(value_type=value):
            return {"name": make_example(value, None, is_full=is_full)} if is_full else {}
        case inspect.BoolType():
            return default is not True
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 2.5
        case inspect.AnyType():
            return {"any": 1}
        case _:
            return "text"


def stored_types(annotation: Any) -> Sequence[inspect.Type]:
    """Return the members of a union, or the type itself."""
    kind = inspect.type_info(annotation)
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def make_examples(kind: inspect.Type) -> list[Any]:
    """Return a minimal and a full example of a struct, or all values of an enum."""
    if isinstance(kind, inspect.EnumType):
        return [member.value for member in kind.cls]
    return [make_example(kind, None, is_full=is_full) for is_full in (False, True)]


def missing_examples() -> Iterator[bytes]:
    """Yield the examples that are not in the file: of a new struct, a new field or a new enum value."""
    known = load_examples()
    for root, annotation in ROOTS.items():
        for plain in (example for kind in stored_types(annotation) for example in make_examples(kind)):
            value = msgspec.convert(plain, annotation)
            meaning = explain(value)
            if not any(example.root == root and example.meaning == meaning for example in known):
                yield msgspec.json.encode(Example(root, msgspec.Raw(msgspec.json.encode(value)), meaning))


def main() -> None:
    lines = list(missing_examples())
    with FILE.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)
    print(f"{len(lines)} examples added")


if __name__ == "__main__":
    main()
