"""The display of tool calls in an editor."""

import json

import pytest
from acp.schema import TextContentBlock

from hark.protocol.messages import Effect
from hark.surfaces.acp.tool_calls import MAX_SHOWN_CHARACTERS, EditorToolCall, fence_text


@pytest.mark.parametrize(
    ("tool", "arguments", "title", "kind"),
    [
        ("shell", {"command": "make\n  test"}, "`make test`", "execute"),
        ("read", {"path": "a.py", "offset": 7}, "read: a.py", "read"),
        ("search", {"pattern": "def x", "path": "src"}, "search: def x", "search"),
        ("fetch", {"url": "https://host/"}, "fetch: https://host/", "fetch"),
        ("git__status", {}, "git__status", "other"),
        ("todo", {"items": []}, "todo", "think"),
    ],
)
def test_call_has_a_title_and_a_kind(tool: str, arguments: dict[str, object], title: str, kind: str) -> None:
    shown = EditorToolCall("c1", tool, json.dumps(arguments), "/work").start_update("pending")
    assert (shown.title, shown.kind, shown.raw_input) == (title, kind, arguments)


def test_location_has_an_absolute_path_and_a_line_number() -> None:
    shown = EditorToolCall("c1", "read", '{"path": "a.py", "offset": 7}', "/work").start_update("pending")
    assert shown.locations is not None
    assert [(place.path, place.line) for place in shown.locations] == [("/work/a.py", 7)]


def test_patch_is_shown_as_diffs() -> None:
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch"
    shown = EditorToolCall("c1", "patch", json.dumps({"patch": patch}), "/work").start_update("pending")
    assert shown.model_dump(exclude_none=True)["content"] == [
        {"type": "diff", "path": "/work/a.txt", "old_text": "a\n", "new_text": "b\n"}
    ]


def test_cancelled_call_is_shown_as_failed_with_its_effect() -> None:
    ended = EditorToolCall("c1", "write", '{"path": "a", "content": "b"}', "/work").end_update(
        "[cancelled]", Effect.CANCELLED, is_error=True
    )
    assert (ended.status, ended.raw_output) == ("failed", {"effect": "cancelled"})
    assert ended.content is not None
    assert "[cancelled]" in str(ended.content[0])


@pytest.mark.parametrize("tool", ["edit", "write", "patch", "read", "shell"])
@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"path": 3}', '{"edits": [1, {"old": 2}]}'])
def test_call_with_invalid_arguments_still_has_a_title(tool: str, arguments: str) -> None:
    begun = EditorToolCall("c1", tool, arguments, "/work").start_update("pending")
    assert (begun.tool_call_id, begun.status) == ("c1", "pending")
    assert begun.title


def get_fenced_text(text: str) -> str:
    block = fence_text(text).content
    assert isinstance(block, TextContentBlock)
    return block.text


def test_output_is_fenced_and_only_the_end_of_long_output_is_shown() -> None:
    assert get_fenced_text("a ``` b\n") == "````\na ``` b\n````"
    text = get_fenced_text("x" * MAX_SHOWN_CHARACTERS + "the end")
    assert "7 earlier characters are not shown" in text
    assert text.endswith("the end\n```")
