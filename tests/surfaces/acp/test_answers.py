"""Prompts that are sent while a permission request is open: an answer, a refused number, a command or a message."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.models.behaviours import text
from tests.surfaces.acp.editor import Editor, open_editor
from tests.surfaces.acp.test_conversation import ASK_SETTINGS, call_shell, call_tools, run_prompt


async def begin_question(editor: Editor, session: str) -> dict[str, object]:
    """Send a prompt whose turn asks, and wait for the permission request. Return the prompt."""
    prompt = editor.make_prompt(session, "go")
    editor.send(prompt)
    await editor.wait_for_permission_request()
    return prompt


def shown_text(editor: Editor) -> str:
    return "".join(update["content"]["text"] for update in editor.updates("agent_message_chunk"))


@pytest.mark.parametrize("words", ["1", "y", "YES.", "yes"])
async def test_a_prompt_that_is_a_choice_answers_the_permission_request(tmp_path: Path, words: str) -> None:
    script = [call_shell("touch made"), text(["done"])]
    async with open_editor(tmp_path, script, settings=ASK_SETTINGS) as (editor, session):
        prompt = await begin_question(editor, session)
        assert await run_prompt(editor, session, words) == "end_turn"
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert (editor.folder / "made").exists()
        assert "Answered: yes" in shown_text(editor)
        assert len(editor.server.requests) == 2


async def test_a_number_outside_the_choices_is_refused_and_a_command_keeps_its_meaning(tmp_path: Path) -> None:
    choices: Any = ["red", "blue"]
    script = [call_tools(("ask", {"question": "Which?", "choices": choices})), text(["done"])]
    async with open_editor(tmp_path, script) as (editor, session):
        prompt = await begin_question(editor, session)
        assert await run_prompt(editor, session, "3") == "end_turn"
        assert "Choose a number from 1 to 2." in shown_text(editor)
        assert await run_prompt(editor, session, "/status") == "end_turn"
        assert await run_prompt(editor, session, "2") == "end_turn"
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert "blue" in json.dumps((await editor.server.request(2)).body)


@pytest.mark.parametrize("words", ["yes please", "2 or 3", "n/a"])
async def test_any_other_prompt_is_a_message_that_withdraws_the_permission_request(tmp_path: Path, words: str) -> None:
    script = [call_shell("touch made"), text(["understood"])]
    async with open_editor(tmp_path, script, settings=ASK_SETTINGS) as (editor, session):
        prompt = await begin_question(editor, session)
        assert await run_prompt(editor, session, words) == "end_turn"
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert words in json.dumps((await editor.server.request(2)).body)
        assert not (editor.folder / "made").exists()


async def test_a_stop_word_ends_the_prompt_that_asked(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("touch made")], settings=ASK_SETTINGS) as (editor, session):
        prompt = await begin_question(editor, session)
        assert await run_prompt(editor, session, "stop") == "end_turn"
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        assert not (editor.folder / "made").exists()
