"""A cancel at any moment ends only its prompt. The response is sent once all work started by the prompt has ended."""

import asyncio
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.models.behaviours import Behaviour, Exchange, blackhole, failing, hanging, silent, text, tokens
from tests.interrupts.histories import check_for_all_protocols
from tests.interrupts.interrupt_fixture import processes_in
from tests.interrupts.points import DAEMON, IGNORE_SIGNALS, SLEEP, call_shell, port_with_full_backlog
from tests.surfaces.acp.editor import Editor, open_editor
from tests.waiting import at_most

PIPELINE_COMMAND = "echo started; sleep 60 | cat | cat"
BACKGROUND_COMMAND = "sleep 60 & echo started; wait"
COMMANDS = {
    "plain": SLEEP,
    "ignores signals": IGNORE_SIGNALS,
    "daemon": DAEMON,
    "pipeline": PIPELINE_COMMAND,
    "background": BACKGROUND_COMMAND,
}
ASK_SETTINGS = '[approvals]\nmode = "ask"\n'
SETTLE_SECONDS = at_most(5.0)  # far above the promised limit, because the machine may be busy


async def messages_after_next_prompt(editor: Editor, session: str, request_number: int) -> list[dict[str, Any]]:
    """Send another prompt, then return the messages in the model request with this number."""
    again = editor.make_prompt(session, "and now?")
    editor.send(again)
    assert await editor.wait_for_stop_reason(again) == "end_turn"
    seen = await editor.server.request(request_number)
    check_for_all_protocols(seen.body)
    return seen.body["messages"]


def join_texts_of_role(messages: list[dict[str, Any]], role: str) -> str:
    return "\n".join(str(message["content"]) for message in messages if message["role"] == role)


async def test_cancel_while_streaming_stores_the_prompt_and_the_partial_reply(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(3), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt)
        await editor.wait_for_update("agent_message_chunk", lambda update: "tok2" in editor.agent_text())
        editor.send(editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        seen = await editor.server.request(1)
        await asyncio.wait_for(seen.disconnected.wait(), SETTLE_SECONDS)
        messages = await messages_after_next_prompt(editor, session, 2)
        assert "first words" in join_texts_of_role(messages, "user")
        assert "tok0 tok1 tok2" in join_texts_of_role(messages, "assistant")


@pytest.mark.parametrize("behaviour", [silent(), blackhole()], ids=["after the headers", "before the first byte"])
async def test_cancel_stops_a_prompt_while_the_model_is_silent(tmp_path: Path, behaviour: Behaviour) -> None:
    async with open_editor(tmp_path, [behaviour, text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt)
        await editor.server.request(1)
        editor.send(editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert "first words" in join_texts_of_role(await messages_after_next_prompt(editor, session, 2), "user")


async def test_cancel_stops_a_prompt_while_the_connection_is_being_opened(tmp_path: Path) -> None:
    async with (
        port_with_full_backlog() as port,
        open_editor(tmp_path, [], base_url=f"http://127.0.0.1:{port}/v1") as (editor, session),
    ):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt)
        await editor.wait_for_update("session_info_update")
        sent = editor.send(editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert time.perf_counter() - sent < SETTLE_SECONDS


async def test_cancel_in_the_same_write_as_its_prompt_stops_the_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt, editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        messages = await messages_after_next_prompt(editor, session, 1)
        assert join_texts_of_role(messages, "user").count("first words") == 1
        assert len(editor.server.requests) == 1, "a cancelled prompt made a request"


async def test_repeated_cancels_have_the_same_effect_as_one(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(2), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        await editor.wait_for_update("agent_message_chunk")
        editor.send(editor.make_cancel(session), editor.make_cancel(session))
        editor.send(editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        await messages_after_next_prompt(editor, session, 2)


async def test_cancel_during_a_retry_pause_stops_the_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [failing(503, "30"), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt)
        await editor.wait_for_update("agent_thought_chunk", lambda update: "Retrying" in update["content"]["text"])
        sent = editor.send(editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert time.perf_counter() - sent < SETTLE_SECONDS
        assert "first words" in join_texts_of_role(await messages_after_next_prompt(editor, session, 2), "user")


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
async def test_cancel_during_a_shell_call_is_answered_after_all_its_processes_have_ended(
    tmp_path: Path, command: str
) -> None:
    async with open_editor(tmp_path, [call_shell(command), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        await editor.wait_for_update("tool_call_update", lambda update: "started" in str(update.get("content")))
        assert processes_in(editor.folder)
        editor.send(editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert processes_in(editor.folder) == []
        ended = editor.updates("tool_call_update")[-1]
        assert ended["status"] == "failed"
        messages = await messages_after_next_prompt(editor, session, 2)
        assert "cancelled" in join_texts_of_role(messages, "tool")
        assert "I try." in join_texts_of_role(messages, "assistant")


async def test_cancel_during_a_permission_request_stops_the_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("touch made"), text(["fine"])], settings=ASK_SETTINGS) as (
        editor,
        session,
    ):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        asked = await editor.wait_for_permission_request()
        editor.send(editor.make_cancel(session))
        editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert len(editor.server.requests) == 1
        await messages_after_next_prompt(editor, session, 2)


async def test_cancelling_a_permission_request_and_the_prompt_causes_no_further_model_request(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("touch made"), text(["fine"])], settings=ASK_SETTINGS) as (
        editor,
        session,
    ):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        asked = await editor.wait_for_permission_request()
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}
        editor.send(answer, editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert len(editor.server.requests) == 1, "the model was asked again although the user cancelled"
        await messages_after_next_prompt(editor, session, 2)


async def test_a_cancelled_permission_request_alone_ends_the_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("touch made"), text(["fine"])], settings=ASK_SETTINGS) as (
        editor,
        session,
    ):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        asked = await editor.wait_for_permission_request()
        editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert len(editor.server.requests) == 1
        await messages_after_next_prompt(editor, session, 2)


async def test_permission_granted_after_the_cancel_has_no_effect(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("touch made"), text(["fine"])], settings=ASK_SETTINGS) as (
        editor,
        session,
    ):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        asked = await editor.wait_for_permission_request()
        allowed = {"outcome": {"outcome": "selected", "optionId": "yes"}}
        editor.send(editor.make_cancel(session), {"jsonrpc": "2.0", "id": asked["id"], "result": allowed})
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        messages = await messages_after_next_prompt(editor, session, 2)
        assert "before it started" in join_texts_of_role(messages, "tool")


async def test_cancel_between_two_prompts_has_no_effect(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [text(["one"]), text(["two"]), text(["three"])]) as (editor, session):
        first, second, third = (editor.make_prompt(session, words) for words in ("a", "b", "c"))
        editor.send(first)
        assert await editor.wait_for_stop_reason(first) == "end_turn"
        editor.send(editor.make_cancel(session), second)
        assert await editor.wait_for_stop_reason(second) == "end_turn"
        editor.send(editor.make_cancel(session))
        editor.send(third)
        assert await editor.wait_for_stop_reason(third) == "end_turn"
        assert editor.agent_text() == "onetwothree"


async def test_cancel_and_next_prompt_in_one_write_cancel_only_the_first_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(1), text(["two"])]) as (editor, session):
        first, second = editor.make_prompt(session, "first words"), editor.make_prompt(session, "second words")
        editor.send(first)
        await editor.wait_for_update("agent_message_chunk")
        editor.send(editor.make_cancel(session), second)
        assert await editor.wait_for_stop_reason(first) == "cancelled"
        assert await editor.wait_for_stop_reason(second) == "end_turn"
        seen = await editor.server.request(2)
        check_for_all_protocols(seen.body)
        assert "first words" in join_texts_of_role(seen.body["messages"], "user")


async def test_new_prompt_interrupts_the_running_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell(SLEEP), text(["two"])]) as (editor, session):
        first, second = editor.make_prompt(session, "first words"), editor.make_prompt(session, "second words")
        editor.send(first)
        await editor.wait_for_update("tool_call_update", lambda update: "started" in str(update.get("content")))
        editor.send(second)
        assert await editor.wait_for_stop_reason(first) == "cancelled"
        assert await editor.wait_for_stop_reason(second) == "end_turn"
        assert processes_in(editor.folder) == []
        check_for_all_protocols((await editor.server.request(2)).body)


async def test_prompts_and_a_cancel_in_one_write_end_in_order(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [text(["fine"])]) as (editor, session):
        prompts = [editor.make_prompt(session, f"words {number}") for number in range(4)]
        editor.send(*prompts, editor.make_cancel(session))
        assert [await editor.wait_for_stop_reason(prompt) for prompt in prompts] == ["cancelled"] * 4
        messages = await messages_after_next_prompt(editor, session, 1)
        assert all(join_texts_of_role(messages, "user").count(f"words {number}") == 1 for number in range(4))


async def test_fifty_rapid_prompt_and_cancel_cycles_lose_no_message(tmp_path: Path) -> None:
    is_finished = asyncio.Event()
    behaviours = cycle([hanging(2), silent(), tokens(2000, 1000)])

    async def play_next(exchange: Exchange) -> None:
        await (text(["fine"]) if is_finished.is_set() else next(behaviours))(exchange)

    async with open_editor(tmp_path, [play_next] * 60) as (editor, session):
        for number in range(50):
            prompt = editor.make_prompt(session, f"cycle {number}!")
            if number % 2:
                editor.send(prompt, editor.make_cancel(session))
            else:
                editor.send(prompt)
                await asyncio.sleep(number / 2000)  # vary the moment of the cancel
                editor.send(editor.make_cancel(session))
            assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        is_finished.set()
        messages = await messages_after_next_prompt(editor, session, len(editor.server.requests) + 1)
        user_text = join_texts_of_role(messages, "user")
        assert all(user_text.count(f"cycle {number}!") == 1 for number in range(50))
