"""The `list` tool."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.listing import ListTool
from tests.tools.fake_context import FakeContext, call_tool


async def list_folder(root: Path, **arguments: Any) -> ToolOutput:
    return await call_tool(ListTool(), arguments, FakeContext(root))


def make_tree(root: Path) -> Path:
    for name in (".git/config", ".hidden", "a.txt", "b/c/d/e.py", "b/f.py", "logs/x.log", "logs/y.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x" * 1_500)
    (root / ".gitignore").write_text("*.log\n")
    (root / "link").symlink_to("a.txt")
    return root


async def test_a_folder_is_shown_as_a_tree_with_sizes(tmp_path: Path) -> None:
    output = await list_folder(make_tree(tmp_path))
    assert output.text == (
        "./\n  a.txt  1.5 kB\n  b/\n    c/\n    f.py  1.5 kB\n  link -> a.txt\n  logs/\n    y.py  1.5 kB"
    )


async def test_depth_hidden_and_ignored_arguments_select_the_entries(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    assert (await list_folder(root, path="b", depth=1)).text == "b/\n  c/\n  f.py  1.5 kB"
    assert (await list_folder(root, path="b/c", depth=9)).text == "b/c/\n  d/\n    e.py  1.5 kB"
    everything = (await list_folder(root, hidden=True, ignored=True)).text
    assert "  .hidden  1.5 kB\n" in everything
    assert "    x.log  1.5 kB\n" in everything
    assert ".git/" not in everything


async def test_glob_finds_files_by_name(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    assert (await list_folder(root, glob="*.py")).text == "b/c/d/e.py  1.5 kB\nb/f.py  1.5 kB\nlogs/y.py  1.5 kB"
    assert (await list_folder(root, path="b", glob="c/**/*.py")).text == "b/c/d/e.py  1.5 kB"
    assert (await list_folder(root, glob="*.rs")).text == "No file matches *.rs."


async def test_listing_of_a_big_folder_is_truncated(tmp_path: Path) -> None:
    for number in range(700):
        (tmp_path / f"{number:03}").touch()
        (tmp_path / f"x{number % 5}").mkdir(exist_ok=True)
    lines = (await list_folder(tmp_path)).text.split("\n")
    assert lines[-1] == "  ... and 505 more here"
    assert len(lines) == 202
    found = (await list_folder(tmp_path, glob="*")).text.split("\n")
    assert len(found) == 601
    assert found[-1].startswith("[only the first 600 are shown")


async def test_listing_a_path_that_is_not_a_folder_causes_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, message in (
        ("file", "is not a folder. Use read"),
        ("fil", "Similar names: file"),
        ("no/thing", "nor does its"),
    ):
        output = await list_folder(tmp_path, path=path)
        assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
        assert message in output.text
    (tmp_path / "empty").mkdir()
    assert "[the folder is empty" in (await list_folder(tmp_path, path="empty")).text


async def test_file_names_that_are_not_valid_text_are_shown_with_a_placeholder(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff")).touch()
    assert "  bad?  0 B" in (await list_folder(tmp_path)).text


async def test_cancelling_ends_a_long_listing(tmp_path: Path) -> None:
    task = asyncio.create_task(
        call_tool(ListTool(), {"path": "/", "glob": "no such file", "ignored": True}, FakeContext(tmp_path))
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
