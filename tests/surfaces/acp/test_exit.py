"""When the editor leaves, what runs is settled and nothing stays."""

import asyncio
import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.fakes.models.behaviours import hanging, text
from tests.interrupts.histories import check_everywhere
from tests.interrupts.interrupt_fixture import processes_in
from tests.interrupts.points import DAEMON, RESISTS, shell
from tests.surfaces.acp.editor import Editor, opened
from tests.waiting import at_most

EXIT_SECONDS = at_most(6.0)


async def left_behind(editor: Editor) -> list[str]:
    return processes_in(editor.folder) + processes_in(editor.home)


async def gone(process: int) -> None:
    """Return when a process has ended, whoever still holds its pipes."""
    has_ended = asyncio.Event()
    descriptor = os.pidfd_open(process)
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, has_ended.set)
    try:
        await has_ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_an_idle_agent_leaves_when_its_input_is_closed(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (editor, _):
        assert await editor.leave() < EXIT_SECONDS
        assert editor.process.returncode == 0
        assert await left_behind(editor) == []


async def test_a_closed_input_interrupts_a_stream_and_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt)
        await editor.update("agent_message_chunk", lambda update: "tok1" in editor.text())
        assert await editor.leave() < EXIT_SECONDS
        assert editor.process.returncode == 0
        assert await editor.stop_reason(prompt) == "cancelled"

        again = Editor(editor.home, editor.folder, editor.server)
        await again.start()
        try:
            await again.ask("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[])
            assert "tok0 tok1" in again.text()
            later = again.prompt(session, "and now?")
            again.send(later)
            assert await again.stop_reason(later) == "end_turn"
            seen = await again.server.request(2)
            check_everywhere(seen.body)
            assert "first words" in json.dumps(seen.body)
        finally:
            await again.end()


@pytest.mark.parametrize("command", [RESISTS, DAEMON], ids=["resisting", "daemon"])
async def test_a_closed_input_leaves_no_process_of_a_tool(tmp_path: Path, command: str) -> None:
    async with opened(tmp_path, [shell(command)]) as (editor, session):
        editor.send(editor.prompt(session, "go"))
        await editor.update("tool_call_update", lambda update: "started" in str(update.get("content")))
        assert await editor.leave() < EXIT_SECONDS
        assert editor.process.returncode == 0
        assert await left_behind(editor) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
async def test_a_signal_settles_what_runs(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async with opened(tmp_path, [shell(DAEMON)]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        await editor.update("tool_call_update", lambda update: "started" in str(update.get("content")))
        editor.process.send_signal(number)
        async with asyncio.timeout(EXIT_SECONDS):
            assert await editor.process.wait() == code
        assert await editor.stop_reason(prompt) == "cancelled"
        assert await left_behind(editor) == []


async def test_an_editor_that_has_closed_its_end_does_not_hold_the_exit(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2)]) as (editor, session):
        editor.send(editor.prompt(session, "go"))
        await editor.update("agent_message_chunk")
        editor.output.close()
        assert await editor.leave() < EXIT_SECONDS
        assert editor.process.returncode == 0


async def test_an_editor_that_has_stopped_reading_does_not_hold_the_exit(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(60_000)]) as (editor, session):
        editor.output.pause_reading()
        editor.send(editor.prompt(session, "go"))
        await editor.server.request(1)
        await asyncio.sleep(0.2)
        leaving = asyncio.create_task(editor.leave())
        async with asyncio.timeout(EXIT_SECONDS):
            await gone(editor.process.pid)
        editor.output.resume_reading()  # only then does asyncio say that it has ended
        await leaving
        assert editor.process.returncode == 0


async def test_what_was_asked_before_the_end_of_the_input_is_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(1)]) as (editor, session):
        listing = editor.request("session/list")
        prompt = editor.prompt(session, "kept words")
        editor.send(listing, prompt)
        assert await editor.leave() < EXIT_SECONDS
        assert "result" in await editor.response(listing)
        assert await editor.stop_reason(prompt) == "cancelled"
        with sqlite3.connect(editor.home / "hark.db") as database:
            assert "kept words" in "\n".join(str(row) for row in database.iterdump())
