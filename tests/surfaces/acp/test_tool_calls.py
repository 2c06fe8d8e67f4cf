"""Tool calls as an editor shows them."""

import json

import pytest
from acp.schema import TextContentBlock

from hark.protocol.messages import Effect
from hark.surfaces.acp.tool_calls import SHOWN_CHARACTERS, ShownCall, fenced


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
def test_a_call_has_a_title_and_a_kind(tool: str, arguments: dict[str, object], title: str, kind: str) -> None:
    shown = ShownCall("c1", tool, json.dumps(arguments), "/work").begin("pending")
    assert (shown.title, shown.kind, shown.raw_input) == (title, kind, arguments)


def test_a_place_is_absolute_and_has_its_line() -> None:
    shown = ShownCall("c1", "read", '{"path": "a.py", "offset": 7}', "/work").begin("pending")
    assert shown.locations is not None
    assert [(place.path, place.line) for place in shown.locations] == [("/work/a.py", 7)]


def test_a_patch_is_shown_as_its_changes() -> None:
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch"
    shown = ShownCall("c1", "patch", json.dumps({"patch": patch}), "/work").begin("pending")
    assert shown.model_dump(exclude_none=True)["content"] == [
        {"type": "diff", "path": "/work/a.txt", "old_text": "a\n", "new_text": "b\n"}
    ]


def test_a_call_that_was_cut_has_failed_and_says_what_is_known() -> None:
    ended = ShownCall("c1", "write", '{"path": "a", "content": "b"}', "/work").ended(
        "[cancelled]", Effect.CANCELLED, is_error=True
    )
    assert (ended.status, ended.raw_output) == ("failed", {"effect": "cancelled"})
    assert ended.content is not None
    assert "[cancelled]" in str(ended.content[0])


@pytest.mark.parametrize("tool", ["edit", "write", "patch", "read", "shell"])
@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"path": 3}', '{"edits": [1, {"old": 2}]}'])
def test_a_call_with_broken_arguments_is_shown_with_a_title(tool: str, arguments: str) -> None:
    begun = ShownCall("c1", tool, arguments, "/work").begin("pending")
    assert (begun.tool_call_id, begun.status) == ("c1", "pending")
    assert begun.title


def shown_text(text: str) -> str:
    block = fenced(text).content
    assert isinstance(block, TextContentBlock)
    return block.text


def test_output_is_shown_as_it_is_and_a_long_one_from_its_end() -> None:
    assert shown_text("a ``` b\n") == "````\na ``` b\n````"
    text = shown_text("x" * SHOWN_CHARACTERS + "the end")
    assert "7 characters before this are not shown" in text
    assert text.endswith("the end\n```")
