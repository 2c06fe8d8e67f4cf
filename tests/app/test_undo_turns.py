"""Undo after real turns restores the files exactly."""

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

import hark
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider, ScriptStep
from tests.cli.command_line import open_hark, shell_call
from tests.fakes.models.behaviours import silent
from tests.tools.undo.random_trees import wait_for_file_clock

SHELL = (
    "printf 'a\\r\\nb' > edited.txt; rm deleted.bin; mv old-name new-name; mkdir -p deep/er; echo x > deep/er/made; "
    "chmod +x script; rmdir empty; ln -s edited.txt link; rm -r folder/inner; echo more >> folder/kept; touch made.too"
)


def make_call(name: str, arguments: dict[str, Any]) -> list[ScriptStep]:
    return [CallChunk(0, f"c-{name}", name, json.dumps(arguments))]


def create_tree(work: Path) -> None:
    """Create a tree with every kind of entry: files, folders, links and unusual names."""
    (work / "folder" / "inner").mkdir(parents=True)
    (work / "empty").mkdir()
    (work / "edited.txt").write_bytes(b"one\r\ntwo\r\n")
    (work / "tool.txt").write_text("first\nsecond\n")
    (work / "deleted.bin").write_bytes(bytes(range(256)) * 10)
    (work / "old-name").write_text("renamed")
    (work / "script").write_text("#!/bin/sh\n")
    (work / "folder" / "kept").write_text("kept\n")
    (work / "folder" / "inner" / "gone").write_text("")
    (work / "ünïcode name\n").write_text("odd")
    (work / "dangling").symlink_to("nowhere")


def read_tree(work: Path) -> dict[str, tuple[int, bytes]]:
    entries: dict[str, tuple[int, bytes]] = {}
    for folder, folders, names in os.walk(work):
        for name in [*folders, *names]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data = b""
            if stat.S_ISLNK(mode):
                data = os.fsencode(path.readlink())
            elif stat.S_ISREG(mode):
                data = path.read_bytes()
            entries[str(path.relative_to(work))] = (mode, data)
    return entries


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    create_tree(folder)
    return folder


async def test_changes_made_by_tools_and_shell_in_a_turn_are_undone_byte_for_byte(tmp_path: Path, work: Path) -> None:
    before = read_tree(work)
    provider = ScriptedProvider(
        [
            make_call("edit", {"path": "tool.txt", "edits": [{"old": "first", "new": "1st"}]}),
            make_call("write", {"path": "new/by-tool.txt", "content": "new"}),
            make_call("shell", {"command": SHELL}),
            make_call("python", {"code": "open('by-python', 'w').write('x'); import os; os.remove('script')"}),
            ["done"],
        ]
    )
    approvals = {"mode": "all"}
    async with hark.open(
        home=tmp_path / "home", workspace=work, routes=[{"provider": provider}], approvals=approvals
    ) as agent:
        session = agent.session("demo")
        await session.say("change it all")
        assert await session.idle() == Completed("done")
        assert read_tree(work) != before
        await session.say("/undo step")
        assert not (work / "by-python").exists()
        assert (work / "made.too").exists()
        await session.say("/undo")
    assert read_tree(work) == before


async def test_undo_is_refused_and_changes_nothing_when_the_user_has_changed_a_file_since(
    tmp_path: Path, work: Path
) -> None:
    provider = ScriptedProvider([make_call("shell", {"command": "echo a > tool.txt; echo b > made"}), ["done"]])
    async with hark.open(home=tmp_path / "home", workspace=work, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        await session.say("change it")
        assert await session.idle() == Completed("done")
        wait_for_file_clock(tmp_path)
        (work / "tool.txt").write_text("mine")
        after = read_tree(work)
        await session.say("/undo")
    assert read_tree(work) == after


async def test_undo_works_after_a_kill_and_a_restart(tmp_path: Path, work: Path) -> None:
    before = read_tree(work)
    async with open_hark(tmp_path, [shell_call(SHELL), silent()]) as program:
        program.folder = work
        running = await program.start("-p", "go", "--session", "demo", "--yes")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await program.wait_for_request(2, running)
        running.signal(signal.SIGKILL)
        await running.wait_for_end()
        assert read_tree(work) != before
        routes = [{"provider": ScriptedProvider([])}]
        async with hark.open(home=program.home, workspace=work, routes=routes, sweeps=False) as agent:
            await agent.session("demo").say("/undo")
    assert read_tree(work) == before
