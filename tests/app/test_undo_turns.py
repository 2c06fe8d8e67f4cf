"""Undo after real turns: the tree is as before, byte by byte."""

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
from hark.providers.scripted import ScriptedProvider, Step
from tests.cli.command_line import opened, shell_call
from tests.fakes.models.behaviours import silent

SHELL = (
    "printf 'a\\r\\nb' > edited.txt; rm deleted.bin; mv old-name new-name; mkdir -p deep/er; echo x > deep/er/made; "
    "chmod +x script; rmdir empty; ln -s edited.txt link; rm -r folder/inner; echo more >> folder/kept; touch made.too"
)


def call(name: str, given: dict[str, Any]) -> list[Step]:
    return [CallChunk(0, f"c-{name}", name, json.dumps(given))]


def grow(work: Path) -> None:
    """A tree with all that a tree can have."""
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


def shape(work: Path) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for folder, folders, names in os.walk(work):
        for name in [*folders, *names]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data = b""
            if stat.S_ISLNK(mode):
                data = os.fsencode(path.readlink())
            elif stat.S_ISREG(mode):
                data = path.read_bytes()
            found[str(path.relative_to(work))] = (mode, data)
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    grow(folder)
    return folder


async def test_what_tools_and_shell_did_in_a_turn_is_undone_byte_by_byte(tmp_path: Path, work: Path) -> None:
    before = shape(work)
    provider = ScriptedProvider(
        [
            call("edit", {"path": "tool.txt", "edits": [{"old": "first", "new": "1st"}]}),
            call("write", {"path": "new/by-tool.txt", "content": "new"}),
            call("shell", {"command": SHELL}),
            call("python", {"code": "open('by-python', 'w').write('x'); import os; os.remove('script')"}),
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
        assert shape(work) != before
        await session.say("/undo step")
        assert not (work / "by-python").exists()
        assert (work / "made.too").exists()
        await session.say("/undo")
    assert shape(work) == before


async def test_a_change_of_the_persons_own_since_then_refuses_the_undo_and_nothing_is_touched(
    tmp_path: Path, work: Path
) -> None:
    provider = ScriptedProvider([call("shell", {"command": "echo a > tool.txt; echo b > made"}), ["done"]])
    async with hark.open(home=tmp_path / "home", workspace=work, routes=[{"provider": provider}]) as agent:
        session = agent.session("demo")
        await session.say("change it")
        assert await session.idle() == Completed("done")
        (work / "tool.txt").write_text("mine")
        after = shape(work)
        await session.say("/undo")
    assert shape(work) == after


async def test_undo_works_after_a_kill_and_a_restart(tmp_path: Path, work: Path) -> None:
    before = shape(work)
    async with opened(tmp_path, [shell_call(SHELL), silent()]) as program:
        program.folder = work
        running = await program.start("-p", "go", "--session", "demo", "--yes")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await program.reached(2, running)
        running.signal(signal.SIGKILL)
        await running.end()
        assert shape(work) != before
        routes = [{"provider": ScriptedProvider([])}]
        async with hark.open(home=program.home, workspace=work, routes=routes, sweeps=False) as agent:
            await agent.session("demo").say("/undo")
    assert shape(work) == before
