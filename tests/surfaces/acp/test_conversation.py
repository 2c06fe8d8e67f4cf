"""A conversation in an editor: messages, tool calls, questions and options."""

import base64
import json
from pathlib import Path
from typing import Any

from hark.protocol.messages import Reasoning
from hark.protocol.provider import EndChunk, ReasoningChunk, ReasoningEnd, TextChunk
from tests.fakes.models.behaviours import failing, hanging, reply, text, tokens
from tests.interrupts.points import call_shell, call_tools
from tests.surfaces.acp.editor import Editor, open_editor

ASK_SETTINGS = '[approvals]\nmode = "ask"\n'


async def run_prompt(editor: Editor, session: str, text: str) -> str:
    prompt = editor.make_prompt(session, text)
    editor.send(prompt)
    return await editor.wait_for_stop_reason(prompt)


async def test_reply_is_sent_in_chunks_with_thinking_and_title(tmp_path: Path) -> None:
    thought = [ReasoningChunk("Let me see."), ReasoningEnd(Reasoning("Let me see."))]
    chunks = [*thought, TextChunk("It is "), TextChunk("four."), EndChunk()]
    async with open_editor(tmp_path, [reply(chunks)]) as (editor, session):
        assert await run_prompt(editor, session, "two and two?") == "end_turn"
        assert editor.agent_text() == "It is four."
        thoughts = editor.updates("agent_thought_chunk")
        assert "".join(update["content"]["text"] for update in thoughts) == "Let me see."
        title = await editor.wait_for_update("session_info_update")
        assert title["title"] == "two and two?"
        commands = (await editor.wait_for_update("available_commands_update"))["availableCommands"]
        assert {"help", "stop", "model"} <= {command["name"] for command in commands}


async def test_large_image_and_resources_reach_the_model(tmp_path: Path) -> None:
    image = base64.b64encode(bytes(5_000_000)).decode()
    async with open_editor(tmp_path, [text(["seen"])]) as (editor, session):
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "a b.py", "uri": "file:///some/a%20b.py"},
            {"type": "resource", "resource": {"uri": "file:///some/c.py", "text": "print('c')"}},
            {"type": "image", "mimeType": "image/png", "data": image},
        ]
        prompt = editor.make_request("session/prompt", sessionId=session, prompt=blocks)
        editor.send(prompt)
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        seen = await editor.server.request(1)
        body = json.dumps(seen.body)
        assert "[a b.py](/some/a b.py)" in body
        assert "print('c')" in body
        assert image in body


async def test_tool_call_is_shown_from_its_permission_request_to_its_result(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("echo out; touch made"), text(["done"])], settings=ASK_SETTINGS) as (
        editor,
        session,
    ):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        request = (await editor.wait_for_permission_request())["params"]
        kinds = {option["kind"] for option in request["options"]}
        assert kinds == {"allow_once", "allow_always", "reject_once"}
        assert request["toolCall"]["title"] == "`echo out; touch made`"
        assert not (editor.folder / "made").exists()
        editor.answer_permission(await editor.wait_for_permission_request(), "yes")
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert (editor.folder / "made").exists()
        call = (editor.updates("tool_call"))[0]
        assert (call["kind"], call["status"], call["rawInput"]) == (
            "execute",
            "pending",
            {"command": "echo out; touch made"},
        )
        statuses = [update["status"] for update in editor.updates("tool_call_update") if "status" in update]
        assert statuses == ["in_progress", "completed"]
        assert "out" in editor.updates("tool_call_update")[-1]["content"][0]["content"]["text"]


async def test_declined_permission_is_reported_to_the_model(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("touch made"), text(["well"])], settings=ASK_SETTINGS) as (
        editor,
        session,
    ):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        editor.answer_permission(await editor.wait_for_permission_request(), "no")
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert not (editor.folder / "made").exists()
        assert "declined" in json.dumps((await editor.server.request(2)).body)
        assert editor.updates("tool_call_update")[-1]["status"] == "failed"


async def test_questions_with_choices_are_asked_and_others_are_returned_to_the_model(tmp_path: Path) -> None:
    choices: Any = ["red", "blue"]
    script = [
        call_tools(("ask", {"question": "Which colour?", "choices": choices})),
        call_tools(("ask", {"question": "Which name?"})),
        text(["good"]),
    ]
    async with open_editor(tmp_path, script) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        asked = await editor.wait_for_permission_request()
        assert asked["params"]["toolCall"]["title"] == "Which colour?"
        assert [option["name"] for option in asked["params"]["options"]] == ["red", "blue"]
        editor.answer_permission(asked, "2")
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        assert "blue" in json.dumps((await editor.server.request(2)).body)
        assert "Put the question in your reply" in json.dumps((await editor.server.request(3)).body)


async def test_file_changes_are_shown_as_diffs(tmp_path: Path) -> None:
    script = [
        call_tools(("write", {"path": "a.txt", "content": "one\ntwo\n"})),
        call_tools(("edit", {"path": "a.txt", "old": "two", "new": "three"})),
        text(["done"]),
    ]
    async with open_editor(tmp_path, script) as (editor, session):
        assert await run_prompt(editor, session, "go") == "end_turn"
        assert (editor.folder / "a.txt").read_text() == "one\nthree\n"
        written, edited = editor.updates("tool_call")
        path = str(editor.folder / "a.txt")
        assert written["content"] == [{"type": "diff", "path": path, "newText": "one\ntwo\n"}]
        assert written["locations"] == [{"path": path}]
        assert edited["content"] == [{"type": "diff", "path": path, "oldText": "two", "newText": "three"}]
        ended = editor.updates("tool_call_update")[-1]
        assert ended["content"] == [{"type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\nthree\n"}]


async def test_todo_list_is_shown_as_a_plan(tmp_path: Path) -> None:
    items: Any = [{"text": "look", "status": "done"}, {"text": "act", "status": "doing"}]
    async with open_editor(tmp_path, [call_tools(("todo", {"items": items})), text(["ok"])]) as (editor, session):
        assert await run_prompt(editor, session, "go") == "end_turn"
        plan = (await editor.wait_for_update("plan"))["entries"]
        assert [(entry["content"], entry["status"]) for entry in plan] == [
            ("look", "completed"),
            ("act", "in_progress"),
        ]


async def test_failed_turn_returns_the_provider_error_text(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [failing(401, message="no such key"), text(["better"])]) as (editor, session):
        prompt = editor.make_prompt(session, "first words")
        editor.send(prompt)
        error = (await editor.wait_for_response(prompt))["error"]
        assert "no such key" in error["message"]
        assert await run_prompt(editor, session, "again") == "end_turn"
        assert "first words" in json.dumps((await editor.server.request(2)).body)


async def test_prompt_that_reaches_the_step_limit_has_its_own_stop_reason(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("true")] * 3, settings="[limits]\nsteps = 2\n") as (editor, session):
        assert await run_prompt(editor, session, "go") == "max_turn_requests"
        assert "Step limit reached" in editor.agent_text()


async def test_mode_and_model_can_be_changed(tmp_path: Path) -> None:
    other = '[[routes]]\nname = "other"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "fake"\n'
    async with open_editor(tmp_path, [call_shell("touch made"), text(["ok"])], settings=other) as (editor, session):
        await editor.call("session/set_mode", sessionId=session, modeId="ask")
        assert (await editor.wait_for_update("config_option_update"))["configOptions"][0]["currentValue"] == "ask"
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        editor.answer_permission(await editor.wait_for_permission_request(), "yes")
        assert await editor.wait_for_stop_reason(prompt) == "end_turn"
        result = await editor.call("session/set_config_option", sessionId=session, configId="model", value="other")
        assert result["configOptions"][1]["currentValue"] == "other"
        wrong = editor.make_request("session/set_mode", sessionId=session, modeId="nonsense")
        editor.send(wrong)
        assert "nonsense" in (await editor.wait_for_response(wrong))["error"]["message"]


async def test_slash_command_runs_immediately_while_a_prompt_is_running(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(1)]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        await editor.wait_for_update("agent_message_chunk")
        assert await run_prompt(editor, session, "/help") == "end_turn"
        assert "/stop" in editor.agent_text()
        assert await run_prompt(editor, session, "/stop") == "end_turn"
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"


async def test_steering_prompt_joins_the_running_prompt(tmp_path: Path) -> None:
    script = [call_shell("while [ ! -e go ]; do sleep 0.01; done; echo went"), text(["both done"])]
    async with open_editor(tmp_path, script, settings='[delivery]\nacp = "steer"\n') as (editor, session):
        first, second = editor.make_prompt(session, "first"), editor.make_prompt(session, "second")
        editor.send(first)
        await editor.wait_for_update("tool_call")
        editor.send(second)
        await editor.wait_until_queued(session, "second")
        (editor.folder / "go").touch()
        assert await editor.wait_for_stop_reason(first) == "end_turn"
        assert await editor.wait_for_stop_reason(second) == "end_turn"
        assert "second" in json.dumps((await editor.server.request(2)).body)


async def test_queued_prompt_runs_after_the_running_prompt(tmp_path: Path) -> None:
    script = [tokens(20, 200), text(["two"])]
    async with open_editor(tmp_path, script, settings='[delivery]\nacp = "queue"\n') as (editor, session):
        first, second = editor.make_prompt(session, "first"), editor.make_prompt(session, "second")
        editor.send(first, second)
        assert await editor.wait_for_stop_reason(second) == "end_turn"
        assert await editor.wait_for_stop_reason(first) == "end_turn"
        assert editor.agent_text().endswith("tok19 two")


async def test_cancel_also_stops_a_pending_steering_prompt(tmp_path: Path) -> None:
    script = [call_shell("echo started; sleep 60"), text(["fine"])]
    async with open_editor(tmp_path, script, settings='[delivery]\nacp = "steer"\n') as (editor, session):
        first, second = editor.make_prompt(session, "first"), editor.make_prompt(session, "second")
        editor.send(first)
        await editor.wait_for_update("tool_call")
        editor.send(second, editor.make_cancel(session))
        assert await editor.wait_for_stop_reason(first) == "cancelled"
        assert await editor.wait_for_stop_reason(second) == "cancelled"
        assert await run_prompt(editor, session, "third") == "end_turn"
        assert len(editor.server.requests) == 2


async def test_stop_word_prompt_stops_the_running_prompt(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(1)]) as (editor, session):
        assert await run_prompt(editor, session, "stop") == "end_turn"
        assert "No turn is running." in editor.agent_text()
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        await editor.wait_for_update("agent_message_chunk")
        assert await run_prompt(editor, session, "Stop!") == "end_turn"
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
