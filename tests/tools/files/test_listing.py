"""The tool that lists folders."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.listing import ListFolder
from tests.tools.context import FakeContext, call_tool


async def listed(root: Path, **arguments: Any) -> ToolOutput:
    return await call_tool(ListFolder(), arguments, FakeContext(root))


def make_tree(root: Path) -> Path:
    for name in (".git/config", ".hidden", "a.txt", "b/c/d/e.py", "b/f.py", "logs/x.log", "logs/y.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x" * 1_500)
    (root / ".gitignore").write_text("*.log\n")
    (root / "link").symlink_to("a.txt")
    return root


async def test_a_folder_is_a_tree_with_sizes(tmp_path: Path) -> None:
    output = await listed(make_tree(tmp_path))
    assert output.text == (
        "./\n  a.txt  1.5 kB\n  b/\n    c/\n    f.py  1.5 kB\n  link -> a.txt\n  logs/\n    y.py  1.5 kB"
    )


async def test_depth_hidden_and_ignored_are_chosen(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    assert (await listed(root, path="b", depth=1)).text == "b/\n  c/\n  f.py  1.5 kB"
    assert (await listed(root, path="b/c", depth=9)).text == "b/c/\n  d/\n    e.py  1.5 kB"
    everything = (await listed(root, hidden=True, ignored=True)).text
    assert "  .hidden  1.5 kB\n" in everything
    assert "    x.log  1.5 kB\n" in everything
    assert ".git/" not in everything


async def test_files_are_found_by_name(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    assert (await listed(root, glob="*.py")).text == "b/c/d/e.py  1.5 kB\nb/f.py  1.5 kB\nlogs/y.py  1.5 kB"
    assert (await listed(root, path="b", glob="c/**/*.py")).text == "b/c/d/e.py  1.5 kB"
    assert (await listed(root, glob="*.rs")).text == "No file is like *.rs."


async def test_a_big_folder_is_cut(tmp_path: Path) -> None:
    for number in range(700):
        (tmp_path / f"{number:03}").touch()
        (tmp_path / f"x{number % 5}").mkdir(exist_ok=True)
    lines = (await listed(tmp_path)).text.split("\n")
    assert lines[-1] == "  ... and 505 more here"
    assert len(lines) == 202
    found = (await listed(tmp_path, glob="*")).text.split("\n")
    assert len(found) == 601
    assert found[-1].startswith("[only the first 600 are shown")


async def test_what_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, words in (("file", "is not a folder. Read it"), ("fil", "Near it: file"), ("no/thing", "nor does its")):
        output = await listed(tmp_path, path=path)
        assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
        assert words in output.text
    (tmp_path / "empty").mkdir()
    assert "[the folder is empty" in (await listed(tmp_path, path="empty")).text


async def test_names_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff")).touch()
    assert "  bad?  0 B" in (await listed(tmp_path)).text


async def test_a_cut_ends_a_long_walk(tmp_path: Path) -> None:
    task = asyncio.create_task(
        call_tool(ListFolder(), {"path": "/", "glob": "no such file", "ignored": True}, FakeContext(tmp_path))
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
