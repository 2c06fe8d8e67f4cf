"""Stored and sent values have explicit tags that don't depend on class names."""

import ast
import importlib
import pkgutil
from pathlib import Path

from msgspec import Struct

import hark
import hark.protocol

# By module: the field that holds the tag, then each tag with the fields of stored and sent values.
# Add new tags and fields here. Existing entries never change, because older homes and clients use them.
STORED_TAGS: dict[str, tuple[str, dict[str, str]]] = {
    "chat": (
        "type",
        {
            "Written": "id address author text attachments voice is_for_us album quoted at",
            "Rewritten": "id address author text at",
            "Removed": "id address",
            "Pressed": "id address author value",
        },
    ),
    "commands": (
        "type",
        {
            "say": "id text delivery author attachments shown",
            "interrupt": "id source turn shown",
            "edit": "id message text",
            "move": "id message position",
            "withdraw": "id message",
            "answer": "id question text",
            "choose_route": "id route",
            "compact": "id instructions",
            "choose_mode": "id mode",
            "rewind": "id turn",
            "remark": "id text",
            "record_aside": "id route usage cost child",
            "work.start": "id work name",
            "work.end": "id work name report wakes",
            "reset": "id keep",
            "undo_reset": "id",
            "pause": "id",
        },
    ),
    "events": (
        "type",
        {
            "message.accepted": "session turn seq at id text author",
            "receipt": "session turn seq at receipt",
            "turn.started": "session turn seq at messages",
            "step.started": "session turn seq at step",
            "reply.delta": "session turn seq at text",
            "reply.restarted": "session turn seq at step",
            "reasoning.delta": "session turn seq at text",
            "call.started": "session turn seq at call name arguments",
            "call.output": "session turn seq at call text",
            "call.ended": "session turn seq at call name effect text is_error",
            "question.asked": "session turn seq at question text choices kind call",
            "question.closed": "session turn seq at question reason",
            "route.changed": "session turn seq at route reason",
            "notice": "session turn seq at code text",
            "turn.ended": "session turn seq at outcome timings usage cost",
        },
    ),
    "messages": (
        "role",
        {
            "user": "id text author attachments",
            "assistant": "text calls reasoning is_partial",
            "tool": "call name text effect is_error attachments",
            "note": "text",
        },
    ),
    "outcomes": (
        "type",
        {
            "completed": "text",
            "interrupted": "source left_running",
            "failed": "error",
            "limit_reached": "limit message",
        },
    ),
    "records": (
        "type",
        {
            "queued": "inbox at message delivery turn is_first",
            "held": "inbox at",
            "released": "inbox at",
            "edited": "inbox at message text",
            "moved": "inbox at message position",
            "withdrawn": "inbox at message text reason",
            "refused": "inbox at command code message",
            "handled": "inbox at command turn",
            "turn.started": "inbox at turn messages task instructions",
            "steered": "inbox at turn step messages",
            "replied": "inbox at turn step message route usage",
            "progress": "inbox at turn step text is_first",
            "compacted": "inbox at turn summary count",
            "route.chosen": "inbox at route",
            "mode.chosen": "inbox at mode",
            "granted": "inbox at grant",
            "rewound": "inbox at turn",
            "remarked": "inbox at text",
            "call.started": "inbox at turn call",
            "call.ended": "inbox at turn result",
            "turn.ended": "inbox at turn outcome timings usage cost",
            "quarantined": "inbox at turn call name text",
            "aside": "inbox at route usage cost child",
            "work.started": "inbox at work name",
            "work.ended": "inbox at work report wakes",
            "wake_ups.held": "inbox at",
            "pause.requested": "inbox at turn",
            "reset.requested": "inbox at turn",
            "session.reset": "inbox at reason",
            "reset.undone": "inbox at",
        },
    ),
}


def tagged_structs(module: str) -> dict[str, type[Struct]]:
    """Return a module's structs by tag, excluding base classes."""
    imported = importlib.import_module(module)
    found = [one for one in vars(imported).values() if isinstance(one, type) and issubclass(one, Struct)]
    return {
        str(one.__struct_config__.tag): one
        for one in found
        if one.__module__ == module and one.__struct_config__.tag is not None and not one.__subclasses__()
    }


def test_every_stored_tag_and_field_still_exists() -> None:
    for name, (tag_field, tags) in STORED_TAGS.items():
        found = tagged_structs(f"hark.protocol.{name}")
        assert set(found) == set(tags), name
        for tag, fields in tags.items():
            assert found[tag].__struct_config__.tag_field == tag_field
            missing = set(fields.split()) - set(found[tag].__struct_encode_fields__)
            assert not missing, f"{name} {tag} has lost {missing}"


def test_every_protocol_module_with_tags_is_listed_in_stored_tags() -> None:
    modules = [one.name for one in pkgutil.walk_packages(hark.protocol.__path__, "hark.protocol.")]
    with_tags = {module.removeprefix("hark.protocol.") for module in modules if tagged_structs(module)}
    assert with_tags == set(STORED_TAGS)


def test_no_struct_derives_its_tag_from_its_class_name() -> None:
    for path in Path(hark.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                tags = [keyword.value for keyword in node.keywords if keyword.arg == "tag"]
                assert all(isinstance(tag, ast.Constant) and isinstance(tag.value, str) for tag in tags), (
                    f'{path.name}: {node.name} needs tag="..."'
                )
