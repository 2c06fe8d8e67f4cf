"""A cancel at any instant ends that prompt, once all that it started is over, and no other."""

import asyncio
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.models.behaviours import Behaviour, Exchange, blackhole, failing, hanging, silent, text, tokens
from tests.interrupts.histories import check_everywhere
from tests.interrupts.interrupt_fixture import processes_in
from tests.interrupts.points import DAEMON, RESISTS, SLEEP, full_port, shell
from tests.surfaces.acp.editor import Editor, opened
from tests.waiting import at_most

PIPELINE = "echo started; sleep 60 | cat | cat"
BACKGROUND = "sleep 60 & echo started; wait"
TOOLS = {"plain": SLEEP, "resisting": RESISTS, "daemon": DAEMON, "pipeline": PIPELINE, "background": BACKGROUND}
ASKS = '[approvals]\nmode = "ask"\n'
SETTLE_SECONDS = at_most(5.0)  # far above what is promised: the machine may be busy


async def history_after(editor: Editor, session: str, request: int) -> list[dict[str, Any]]:
    """Prompt once more; return the messages of the model's request of that number."""
    again = editor.prompt(session, "and now?")
    editor.send(again)
    assert await editor.stop_reason(again) == "end_turn"
    seen = await editor.server.request(request)
    check_everywhere(seen.body)
    return seen.body["messages"]


def said_by(messages: list[dict[str, Any]], role: str) -> str:
    return "\n".join(str(message["content"]) for message in messages if message["role"] == role)


async def test_a_cancel_while_streaming_keeps_the_prompt_and_what_was_said(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(3), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt)
        await editor.update("agent_message_chunk", lambda update: "tok2" in editor.text())
        editor.send(editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        seen = await editor.server.request(1)
        await asyncio.wait_for(seen.left.wait(), SETTLE_SECONDS)
        messages = await history_after(editor, session, 2)
        assert "first words" in said_by(messages, "user")
        assert "tok0 tok1 tok2" in said_by(messages, "assistant")


@pytest.mark.parametrize("behaviour", [silent(), blackhole()], ids=["after the headers", "before the first byte"])
async def test_a_cancel_meets_a_silent_model(tmp_path: Path, behaviour: Behaviour) -> None:
    async with opened(tmp_path, [behaviour, text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt)
        await editor.server.request(1)
        editor.send(editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        assert "first words" in said_by(await history_after(editor, session, 2), "user")


async def test_a_cancel_meets_a_connect_that_hangs(tmp_path: Path) -> None:
    async with full_port() as port, opened(tmp_path, [], base_url=f"http://127.0.0.1:{port}/v1") as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt)
        await editor.update("session_info_update")
        sent = editor.send(editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        assert time.perf_counter() - sent < SETTLE_SECONDS


async def test_a_cancel_in_the_same_write_as_its_prompt(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt, editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        messages = await history_after(editor, session, 1)
        assert said_by(messages, "user").count("first words") == 1
        assert len(editor.server.requests) == 1, "a cancelled prompt made a request"


async def test_two_cancels_are_one(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(2), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        await editor.update("agent_message_chunk")
        editor.send(editor.cancel(session), editor.cancel(session))
        editor.send(editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        await history_after(editor, session, 2)


async def test_a_cancel_in_the_pause_of_a_retry(tmp_path: Path) -> None:
    async with opened(tmp_path, [failing(503, "30"), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt)
        await editor.update("agent_thought_chunk", lambda update: "retry" in update["content"]["text"])
        sent = editor.send(editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        assert time.perf_counter() - sent < SETTLE_SECONDS
        assert "first words" in said_by(await history_after(editor, session, 2), "user")


@pytest.mark.parametrize("command", TOOLS.values(), ids=TOOLS.keys())
async def test_a_cancel_in_a_shell_tool_is_answered_when_all_its_processes_are_dead(
    tmp_path: Path, command: str
) -> None:
    async with opened(tmp_path, [shell(command), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        await editor.update("tool_call_update", lambda update: "started" in str(update.get("content")))
        assert processes_in(editor.folder)
        editor.send(editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        assert processes_in(editor.folder) == []
        ended = editor.updates("tool_call_update")[-1]
        assert ended["status"] == "failed"
        messages = await history_after(editor, session, 2)
        assert "cancelled" in said_by(messages, "tool")
        assert "I try." in said_by(messages, "assistant")


async def test_a_cancel_in_a_permission_request(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("touch made"), text(["fine"])], settings=ASKS) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        asked = await editor.asked()
        editor.send(editor.cancel(session))
        editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        assert await editor.stop_reason(prompt) == "cancelled"
        assert len(editor.server.requests) == 1
        await history_after(editor, session, 2)


async def test_a_cancelled_permission_alone_ends_the_prompt(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("touch made"), text(["fine"])], settings=ASKS) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        asked = await editor.asked()
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}
        editor.send(answer, editor.cancel(session))
        assert await editor.stop_reason(prompt) == "cancelled"
        assert len(editor.server.requests) == 1, "the model was asked again behind the person's back"
        await history_after(editor, session, 2)


async def test_an_answer_that_comes_after_the_cancel_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("touch made"), text(["fine"])], settings=ASKS) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        asked = await editor.asked()
        allowed = {"outcome": {"outcome": "selected", "optionId": "yes"}}
        editor.send(editor.cancel(session), {"jsonrpc": "2.0", "id": asked["id"], "result": allowed})
        assert await editor.stop_reason(prompt) == "cancelled"
        messages = await history_after(editor, session, 2)
        assert "before it was started" in said_by(messages, "tool")


async def test_a_cancel_after_the_end_and_just_before_the_next_prompt_touches_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["one"]), text(["two"]), text(["three"])]) as (editor, session):
        first, second, third = (editor.prompt(session, words) for words in ("a", "b", "c"))
        editor.send(first)
        assert await editor.stop_reason(first) == "end_turn"
        editor.send(editor.cancel(session), second)
        assert await editor.stop_reason(second) == "end_turn"
        editor.send(editor.cancel(session))
        editor.send(third)
        assert await editor.stop_reason(third) == "end_turn"
        assert editor.text() == "onetwothree"


async def test_a_cancel_and_the_next_prompt_in_one_write(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(1), text(["two"])]) as (editor, session):
        first, second = editor.prompt(session, "first words"), editor.prompt(session, "second words")
        editor.send(first)
        await editor.update("agent_message_chunk")
        editor.send(editor.cancel(session), second)
        assert await editor.stop_reason(first) == "cancelled"
        assert await editor.stop_reason(second) == "end_turn"
        seen = await editor.server.request(2)
        check_everywhere(seen.body)
        assert "first words" in said_by(seen.body["messages"], "user")


async def test_a_prompt_interrupts_the_one_that_runs(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell(SLEEP), text(["two"])]) as (editor, session):
        first, second = editor.prompt(session, "first words"), editor.prompt(session, "second words")
        editor.send(first)
        await editor.update("tool_call_update", lambda update: "started" in str(update.get("content")))
        editor.send(second)
        assert await editor.stop_reason(first) == "cancelled"
        assert await editor.stop_reason(second) == "end_turn"
        assert processes_in(editor.folder) == []
        check_everywhere((await editor.server.request(2)).body)


async def test_prompts_and_a_cancel_in_one_write_end_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["fine"])]) as (editor, session):
        prompts = [editor.prompt(session, f"words {number}") for number in range(4)]
        editor.send(*prompts, editor.cancel(session))
        assert [await editor.stop_reason(prompt) for prompt in prompts] == ["cancelled"] * 4
        messages = await history_after(editor, session, 1)
        assert all(said_by(messages, "user").count(f"words {number}") == 1 for number in range(4))


async def test_fifty_rapid_cycles(tmp_path: Path) -> None:
    are_over = asyncio.Event()
    plays = cycle([hanging(2), silent(), tokens(2000, 1000)])

    async def play(exchange: Exchange) -> None:
        await (text(["fine"]) if are_over.is_set() else next(plays))(exchange)

    async with opened(tmp_path, [play] * 60) as (editor, session):
        for number in range(50):
            prompt = editor.prompt(session, f"cycle {number}!")
            if number % 2:
                editor.send(prompt, editor.cancel(session))
            else:
                editor.send(prompt)
                await asyncio.sleep(number / 2000)  # so that the cancels fall anywhere
                editor.send(editor.cancel(session))
            assert await editor.stop_reason(prompt) == "cancelled"
        are_over.set()
        messages = await history_after(editor, session, len(editor.server.requests) + 1)
        users = said_by(messages, "user")
        assert all(users.count(f"cycle {number}!") == 1 for number in range(50))
