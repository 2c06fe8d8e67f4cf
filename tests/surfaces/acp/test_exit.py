"""When the editor disconnects, running work is stopped and no process remains."""

import asyncio
import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.fakes.models.behaviours import hanging, text
from tests.interrupts.histories import check_for_all_protocols
from tests.interrupts.interrupt_fixture import processes_in
from tests.interrupts.points import DAEMON, IGNORE_SIGNALS, call_shell
from tests.surfaces.acp.editor import Editor, open_editor
from tests.waiting import at_most

EXIT_SECONDS = at_most(6.0)


async def remaining_processes(editor: Editor) -> list[str]:
    return processes_in(editor.folder) + processes_in(editor.home)


async def wait_for_exit(pid: int) -> None:
    """Wait until a process has ended, even if its pipes are still open."""
    has_ended = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, has_ended.set)
    try:
        await has_ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_idle_agent_exits_when_its_input_is_closed(tmp_path: Path) -> None:
    async with open_editor(tmp_path, []) as (editor, _):
        assert await editor.close_input() < EXIT_SECONDS
        assert editor.process.returncode == 0
        assert await remaining_processes(editor) == []


async def test_closed_input_interrupts_the_stream_and_stores_the_partial_reply(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(2), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt)
        await editor.wait_for_update("agent_message_chunk", lambda update: "tok1" in editor.agent_text())
        assert await editor.close_input() < EXIT_SECONDS
        assert editor.process.returncode == 0
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"

        second_editor = Editor(editor.home, editor.folder, editor.server)
        await second_editor.start()
        try:
            await second_editor.call("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[])
            assert "tok0 tok1" in second_editor.agent_text()
            later = second_editor.make_prompt(session, "and now?")
            second_editor.send(later)
            assert await second_editor.wait_for_stop_reason(later) == "end_turn"
            seen = await second_editor.server.request(2)
            check_for_all_protocols(seen.body)
            assert "first words" in json.dumps(seen.body)
        finally:
            await second_editor.kill()


@pytest.mark.parametrize("command", [IGNORE_SIGNALS, DAEMON], ids=["ignores signals", "daemon"])
async def test_closed_input_leaves_no_tool_process_running(tmp_path: Path, command: str) -> None:
    async with open_editor(tmp_path, [call_shell(command)]) as (editor, session):
        editor.send(editor.make_prompt(session, "go"))
        await editor.wait_for_update("tool_call_update", lambda update: "started" in str(update.get("content")))
        assert await editor.close_input() < EXIT_SECONDS
        assert editor.process.returncode == 0
        assert await remaining_processes(editor) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
async def test_signal_stops_the_running_turn_and_sets_the_exit_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with open_editor(tmp_path, [call_shell(DAEMON)]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        await editor.wait_for_update("tool_call_update", lambda update: "started" in str(update.get("content")))
        editor.process.send_signal(number)
        async with asyncio.timeout(EXIT_SECONDS):
            assert await editor.process.wait() == code
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert await remaining_processes(editor) == []


async def test_editor_that_closed_the_output_pipe_does_not_delay_the_agents_exit(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(2)]) as (editor, session):
        editor.send(editor.make_prompt(session, "go"))
        await editor.wait_for_update("agent_message_chunk")
        editor.output.close()
        assert await editor.close_input() < EXIT_SECONDS
        assert editor.process.returncode == 0


async def test_editor_that_stopped_reading_does_not_delay_the_agents_exit(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(60_000)]) as (editor, session):
        editor.output.pause_reading()
        editor.send(editor.make_prompt(session, "go"))
        await editor.server.request(1)
        await asyncio.sleep(0.2)
        closing = asyncio.create_task(editor.close_input())
        async with asyncio.timeout(EXIT_SECONDS):
            await wait_for_exit(editor.process.pid)
        editor.output.resume_reading()  # only then does asyncio report the exit
        await closing
        assert editor.process.returncode == 0


async def test_requests_sent_before_the_end_of_the_input_are_answered(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(1)]) as (editor, session):
        listing = editor.make_request("session/list")
        prompt = editor.make_prompt(session, "kept words")
        editor.send(listing, prompt)
        assert await editor.close_input() < EXIT_SECONDS
        assert "result" in await editor.wait_for_response(listing)
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        with sqlite3.connect(editor.home / "hark.db") as database:
            assert "kept words" in "\n".join(str(row) for row in database.iterdump())
