"""The line to the editor: broken input, slow readers, many pieces."""

import asyncio
from pathlib import Path

from tests.fakes.models.behaviours import hanging, text, tokens
from tests.fakes.models.exchange import Exchange
from tests.surfaces.acp.editor import opened
from tests.waiting import at_most


async def test_what_is_no_message_is_answered_and_does_no_harm(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["fine"])]) as (editor, session):
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
        prompt = editor.prompt(session, "go")
        prompt["params"]["_meta"] = {"session_id": "another", "self": 1}
        editor.send(prompt)
        assert await editor.stop_reason(prompt) == "end_turn"
        errors = [message["error"]["code"] for message in editor.received if message.get("id", 0) is None]
        assert sorted(errors) == [-32700, -32700, -32700, -32600, -32600, -32600, -32600]


async def test_an_editor_that_does_not_read_can_still_cancel(tmp_path: Path) -> None:
    count = 60_000  # far more than the pipe and its buffers hold
    async with opened(tmp_path, [hanging(count), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.output.pause_reading()
        editor.send(prompt)
        seen = await editor.server.request(1)
        await asyncio.sleep(0.2)
        editor.send(editor.cancel(session))
        async with asyncio.timeout(at_most(10)):
            await seen.left.wait()
        editor.output.resume_reading()
        assert await editor.stop_reason(prompt) == "cancelled"
        last = editor.prompt(session, "and now?")
        editor.send(last)
        assert await editor.stop_reason(last) == "end_turn"


async def test_an_editor_that_reads_late_gets_all_in_order(tmp_path: Path) -> None:
    count = 60_000
    is_said = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await tokens(count)(exchange)
        is_said.set()

    async with opened(tmp_path, [play]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.output.pause_reading()
        editor.send(prompt)
        await is_said.wait()
        editor.output.resume_reading()
        assert await editor.stop_reason(prompt) == "end_turn"
        assert editor.text() == "".join(f"tok{number} " for number in range(count))
        assert len(editor.updates("agent_message_chunk")) < count / 4


async def test_pieces_are_joined_and_none_is_lost(tmp_path: Path) -> None:
    count = 30_000
    async with opened(tmp_path, [tokens(count)]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        assert await editor.stop_reason(prompt) == "end_turn"
        assert editor.text() == "".join(f"tok{number} " for number in range(count))
        assert len(editor.updates("agent_message_chunk")) < count / 4
