"""A conversation in an editor: what is said, shown, asked and chosen."""

import base64
import json
from pathlib import Path
from typing import Any

from hark.protocol.messages import Reasoning
from hark.protocol.provider import EndChunk, ReasoningChunk, ReasoningEnd, TextChunk
from tests.fakes.models.behaviours import failing, hanging, reply, text, tokens
from tests.interrupts.points import shell, tools
from tests.surfaces.acp.editor import Editor, opened

ASKS = '[approvals]\nmode = "ask"\n'


async def run(editor: Editor, session: str, words: str) -> str:
    prompt = editor.prompt(session, words)
    editor.send(prompt)
    return await editor.stop_reason(prompt)


async def test_a_prompt_is_answered_in_pieces(tmp_path: Path) -> None:
    thought = [ReasoningChunk("Let me see."), ReasoningEnd(Reasoning("Let me see."))]
    chunks = [*thought, TextChunk("It is "), TextChunk("four."), EndChunk()]
    async with opened(tmp_path, [reply(chunks)]) as (editor, session):
        assert await run(editor, session, "two and two?") == "end_turn"
        assert editor.text() == "It is four."
        thoughts = editor.updates("agent_thought_chunk")
        assert "".join(update["content"]["text"] for update in thoughts) == "Let me see."
        title = await editor.update("session_info_update")
        assert title["title"] == "two and two?"
        commands = (await editor.update("available_commands_update"))["availableCommands"]
        assert {"help", "stop", "model"} <= {command["name"] for command in commands}


async def test_a_large_picture_and_resources_reach_the_model(tmp_path: Path) -> None:
    picture = base64.b64encode(bytes(5_000_000)).decode()
    async with opened(tmp_path, [text(["seen"])]) as (editor, session):
        blocks: list[dict[str, Any]] = [
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "a b.py", "uri": "file:///some/a%20b.py"},
            {"type": "resource", "resource": {"uri": "file:///some/c.py", "text": "print('c')"}},
            {"type": "image", "mimeType": "image/png", "data": picture},
        ]
        prompt = editor.request("session/prompt", sessionId=session, prompt=blocks)
        editor.send(prompt)
        assert await editor.stop_reason(prompt) == "end_turn"
        seen = await editor.server.request(1)
        body = json.dumps(seen.body)
        assert "[a b.py](/some/a b.py)" in body
        assert "print('c')" in body
        assert picture in body


async def test_a_tool_call_is_shown_from_its_question_to_its_result(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("echo out; touch made"), text(["done"])], settings=ASKS) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        asked = (await editor.asked())["params"]
        kinds = {option["kind"] for option in asked["options"]}
        assert kinds == {"allow_once", "allow_always", "reject_once"}
        assert asked["toolCall"]["title"] == "`echo out; touch made`"
        assert not (editor.folder / "made").exists()
        editor.choose(await editor.asked(), "yes")
        assert await editor.stop_reason(prompt) == "end_turn"
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


async def test_a_refusal_is_told_to_the_model(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("touch made"), text(["well"])], settings=ASKS) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        editor.choose(await editor.asked(), "no")
        assert await editor.stop_reason(prompt) == "end_turn"
        assert not (editor.folder / "made").exists()
        assert "did not allow" in json.dumps((await editor.server.request(2)).body)
        assert editor.updates("tool_call_update")[-1]["status"] == "failed"


async def test_a_question_with_choices_is_asked_and_one_without_goes_back_to_the_model(tmp_path: Path) -> None:
    choices: Any = ["red", "blue"]
    script = [
        tools(("ask", {"question": "Which colour?", "choices": choices})),
        tools(("ask", {"question": "Which name?"})),
        text(["good"]),
    ]
    async with opened(tmp_path, script) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        asked = await editor.asked()
        assert asked["params"]["toolCall"]["title"] == "Which colour?"
        assert [option["name"] for option in asked["params"]["options"]] == ["red", "blue"]
        editor.choose(asked, "2")
        assert await editor.stop_reason(prompt) == "end_turn"
        assert "blue" in json.dumps((await editor.server.request(2)).body)
        assert "Put the question in your reply" in json.dumps((await editor.server.request(3)).body)


async def test_changes_to_files_are_shown_as_diffs(tmp_path: Path) -> None:
    script = [
        tools(("write", {"path": "a.txt", "content": "one\ntwo\n"})),
        tools(("edit", {"path": "a.txt", "old": "two", "new": "three"})),
        text(["done"]),
    ]
    async with opened(tmp_path, script) as (editor, session):
        assert await run(editor, session, "go") == "end_turn"
        assert (editor.folder / "a.txt").read_text() == "one\nthree\n"
        written, edited = editor.updates("tool_call")
        path = str(editor.folder / "a.txt")
        assert written["content"] == [{"type": "diff", "path": path, "newText": "one\ntwo\n"}]
        assert written["locations"] == [{"path": path}]
        assert edited["content"] == [{"type": "diff", "path": path, "oldText": "two", "newText": "three"}]
        ended = editor.updates("tool_call_update")[-1]
        assert ended["content"] == [{"type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\nthree\n"}]


async def test_the_list_of_things_to_do_is_the_plan(tmp_path: Path) -> None:
    items: Any = [{"text": "look", "status": "done"}, {"text": "act", "status": "doing"}]
    async with opened(tmp_path, [tools(("todo", {"items": items})), text(["ok"])]) as (editor, session):
        assert await run(editor, session, "go") == "end_turn"
        plan = (await editor.update("plan"))["entries"]
        assert [(entry["content"], entry["status"]) for entry in plan] == [
            ("look", "completed"),
            ("act", "in_progress"),
        ]


async def test_a_failed_turn_answers_with_the_words_of_the_provider(tmp_path: Path) -> None:
    async with opened(tmp_path, [failing(401, words="no such key"), text(["better"])]) as (editor, session):
        prompt = editor.prompt(session, "first words")
        editor.send(prompt)
        error = (await editor.response(prompt))["error"]
        assert "no such key" in error["message"]
        assert await run(editor, session, "again") == "end_turn"
        assert "first words" in json.dumps((await editor.server.request(2)).body)


async def test_a_limit_has_its_own_reason(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("true")] * 3, settings="[limits]\nsteps = 2\n") as (editor, session):
        assert await run(editor, session, "go") == "max_turn_requests"
        assert "step" in editor.text()


async def test_modes_and_models_are_chosen(tmp_path: Path) -> None:
    other = '[[routes]]\nname = "other"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "fake"\n'
    async with opened(tmp_path, [shell("touch made"), text(["ok"])], settings=other) as (editor, session):
        await editor.ask("session/set_mode", sessionId=session, modeId="ask")
        assert (await editor.update("config_option_update"))["configOptions"][0]["currentValue"] == "ask"
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        editor.choose(await editor.asked(), "yes")
        assert await editor.stop_reason(prompt) == "end_turn"
        result = await editor.ask("session/set_config_option", sessionId=session, configId="model", value="other")
        assert result["configOptions"][1]["currentValue"] == "other"
        wrong = editor.request("session/set_mode", sessionId=session, modeId="nonsense")
        editor.send(wrong)
        assert "nonsense" in (await editor.response(wrong))["error"]["message"]


async def test_a_slash_command_runs_at_once_beside_a_prompt(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(1)]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        await editor.update("agent_message_chunk")
        assert await run(editor, session, "/help") == "end_turn"
        assert "/stop" in editor.text()
        assert await run(editor, session, "/stop") == "end_turn"
        assert await editor.stop_reason(prompt) == "cancelled"


async def test_a_steering_prompt_goes_along_with_the_one_that_runs(tmp_path: Path) -> None:
    script = [shell("while [ ! -e go ]; do sleep 0.01; done; echo went"), text(["both done"])]
    async with opened(tmp_path, script, settings='[delivery]\nacp = "steer"\n') as (editor, session):
        first, second = editor.prompt(session, "first"), editor.prompt(session, "second")
        editor.send(first)
        await editor.update("tool_call")
        editor.send(second)
        await editor.until_waiting(session, "second")
        (editor.folder / "go").touch()
        assert await editor.stop_reason(first) == "end_turn"
        assert await editor.stop_reason(second) == "end_turn"
        assert "second" in json.dumps((await editor.server.request(2)).body)


async def test_a_queued_prompt_waits_for_the_one_that_runs(tmp_path: Path) -> None:
    script = [tokens(20, 200), text(["two"])]
    async with opened(tmp_path, script, settings='[delivery]\nacp = "queue"\n') as (editor, session):
        first, second = editor.prompt(session, "first"), editor.prompt(session, "second")
        editor.send(first, second)
        assert await editor.stop_reason(second) == "end_turn"
        assert await editor.stop_reason(first) == "end_turn"
        assert editor.text().endswith("tok19 two")


async def test_a_cancel_takes_a_waiting_steer_along(tmp_path: Path) -> None:
    script = [shell("echo started; sleep 60"), text(["fine"])]
    async with opened(tmp_path, script, settings='[delivery]\nacp = "steer"\n') as (editor, session):
        first, second = editor.prompt(session, "first"), editor.prompt(session, "second")
        editor.send(first)
        await editor.update("tool_call")
        editor.send(second, editor.cancel(session))
        assert await editor.stop_reason(first) == "cancelled"
        assert await editor.stop_reason(second) == "cancelled"
        assert await run(editor, session, "third") == "end_turn"
        assert len(editor.server.requests) == 2


async def test_a_prompt_that_is_a_stop_word_stops_the_one_that_runs(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(1)]) as (editor, session):
        assert await run(editor, session, "stop") == "end_turn"
        assert "No turn is running." in editor.text()
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        await editor.update("agent_message_chunk")
        assert await run(editor, session, "Stop!") == "end_turn"
        assert await editor.stop_reason(prompt) == "cancelled"
