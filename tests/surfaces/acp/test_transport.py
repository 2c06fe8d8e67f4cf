"""The connection to the editor: invalid input, slow readers and many chunks."""

import asyncio
from pathlib import Path

from tests.fakes.models.behaviours import hanging, text, tokens
from tests.fakes.models.exchange import Exchange
from tests.surfaces.acp.editor import open_editor
from tests.waiting import at_most


async def test_invalid_lines_are_answered_with_errors_and_do_not_affect_prompts(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [text(["fine"])]) as (editor, session):
        for line in (
            b"{nonsense",
            b"[]",
            b"7",
            b'{"id": []}',
            b'{"method": 3, "id": 1}',
            b"\xff\xfe",
            b"  ",
            b"[" * 9999,
        ):
            editor.write(line + b"\n")
        editor.write(b'{"jsonrpc": "2.0", "id": 99, "result": {}}\n')
        editor.write(b'{"jsonrpc": "2.0", "method": "session/unheard_of", "params": {}}\n')
        prompt = editor.make_prompt(session, "go")
        prompt["params"]["_meta"] = {"session_id": "another", "self": 1}
        editor.send(prompt)
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        errors = [message["error"]["code"] for message in editor.received if message.get("id", 0) is None]
        assert sorted(errors) == [-32700, -32700, -32700, -32600, -32600, -32600, -32600]


async def test_editor_that_does_not_read_its_input_can_still_cancel(tmp_path: Path) -> None:
    count = 60_000  # far more than the pipe and its buffers can hold
    async with open_editor(tmp_path, [hanging(count), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.output.pause_reading()
        editor.send(prompt)
        seen = await editor.server.request(1)
        await asyncio.sleep(0.2)
        editor.send(editor.make_cancel(session))
        async with asyncio.timeout(at_most(10)):
            await seen.disconnected.wait()
        editor.output.resume_reading()
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        last = editor.make_prompt(session, "and now?")
        editor.send(last)
        assert await editor.wait_for_stop_reason(last) == "end_turn"


async def test_editor_that_reads_late_receives_all_text_in_order(tmp_path: Path) -> None:
    count = 60_000
    is_sent = asyncio.Event()

    async def play_and_notify(exchange: Exchange) -> None:
        await tokens(count)(exchange)
        is_sent.set()

    async with open_editor(tmp_path, [play_and_notify]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.output.pause_reading()
        editor.send(prompt)
        await is_sent.wait()
        editor.output.resume_reading()
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert editor.agent_text() == "".join(f"tok{number} " for number in range(count))
        assert len(editor.updates("agent_message_chunk")) < count / 4


async def test_chunks_are_merged_without_losing_text(tmp_path: Path) -> None:
    count = 30_000
    async with open_editor(tmp_path, [tokens(count)]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert editor.agent_text() == "".join(f"tok{number} " for number in range(count))
        assert len(editor.updates("agent_message_chunk")) < count / 4
