"""The `todo` tool: each call replaces the whole list, which survives a restart."""

from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.notes.todo import TodoArguments, TodoTool, todo_file
from tests.tools.fake_context import FakeContext, call_tool


async def todo(home: Path, items: list[Any] | None = None, session: str = "session") -> ToolOutput:
    context = FakeContext(home)
    context.session = session
    return await call_tool(TodoTool(home), {} if items is None else {"items": items}, context)


async def test_the_todo_list_is_returned_and_stored_per_session(tmp_path: Path) -> None:
    items = [
        {"text": "look", "status": "done"},
        {"text": "build\n it", "status": "doing"},
        {"text": "test", "status": "pending"},
    ]
    shown = "1. [x] look\n2. [>] build it\n3. [ ] test\n1 of 3 done"
    assert (await todo(tmp_path, items)).text == shown
    assert (await todo(tmp_path)).text == shown
    assert (await todo(tmp_path, session="other")).text == "The to-do list is empty."
    assert todo_file(tmp_path, "session").stat().st_mode & 0o777 == 0o600


async def test_a_new_todo_list_replaces_the_old_one(tmp_path: Path) -> None:
    await todo(tmp_path, [{"text": "a", "status": "pending"}, {"text": "b", "status": "pending"}])
    await todo(tmp_path, [{"text": "b", "status": "done"}])
    assert (await todo(tmp_path)).text == "1. [x] b\n1 of 1 done"
    await todo(tmp_path, [])
    assert (await todo(tmp_path)).text == "The to-do list is empty."


async def test_plain_texts_become_pending_items(tmp_path: Path) -> None:
    assert (await todo(tmp_path, ["a", {"text": "b"}])).text == "1. [ ] a\n2. [ ] b\n0 of 2 done"


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([{"status": "done"}], "item 1 has no text"),
        ([{"text": "a"}, {"text": "  "}], "item 2 has no text"),
        ([3], "item 1 has no text"),
        ([{"text": "a", "status": "later"}], "pending, doing, done"),
        ([{"text": "a", "status": ["done"]}], "pending, doing, done"),
        (["x"] * 101, "at most 100"),
        ("a", "expected"),
    ],
)
async def test_invalid_items_cause_an_error_and_the_list_is_unchanged(tmp_path: Path, items: Any, reason: str) -> None:
    await todo(tmp_path, ["kept"])
    output = await todo(tmp_path, items)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert reason in output.text
    assert "kept" in (await todo(tmp_path)).text


async def test_an_unreadable_file_counts_as_an_empty_list(tmp_path: Path) -> None:
    path = todo_file(tmp_path, "session")
    path.parent.mkdir()
    path.write_bytes(b"\xff{")
    assert (await todo(tmp_path)).text == "The to-do list is empty."
    assert not (await todo(tmp_path, ["a"])).is_error


async def test_a_todo_list_that_cannot_be_saved_is_still_returned(tmp_path: Path) -> None:
    (tmp_path / "todo").write_text("a file where the folder should be")
    output = await todo(tmp_path, ["a"])
    assert output.is_error
    assert output.text.startswith("1. [ ] a\n")
    assert "could not be saved" in output.text


def test_todo_needs_no_approval(tmp_path: Path) -> None:
    assert not TodoTool(tmp_path).spec.predict_effects(TodoArguments([])).is_changing
