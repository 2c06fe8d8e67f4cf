"""Sessions in an editor: created, listed, loaded and run in parallel, each in its own folder."""

from pathlib import Path

from tests.fakes.models.behaviours import Behaviour, Exchange, hanging, text
from tests.interrupts.points import call_shell
from tests.surfaces.acp.editor import Editor, open_editor


async def run_prompt(editor: Editor, session: str, text: str) -> None:
    prompt = editor.make_prompt(session, text)
    editor.send(prompt)
    assert await editor.wait_for_stop_reason(prompt) == "end_turn"


def choose_by_prompt(**behaviours: Behaviour) -> Behaviour:
    """Return a behaviour that plays the behaviour selected by the prompt."""

    async def play(exchange: Exchange) -> None:
        await behaviours[exchange.event_writer.prompt(exchange.request.body)](exchange)

    return play


async def test_loaded_session_shows_its_history_before_the_response(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [call_shell("echo out"), text(["done"]), text(["more"])]) as (editor, session):
        await run_prompt(editor, session, "first words")
        await editor.close_input()
        second_editor = Editor(editor.home, editor.folder, editor.server)
        await second_editor.start()
        try:
            await second_editor.call("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[])
            kinds = [update["sessionUpdate"] for update in second_editor.updates()]
            expected = [
                "user_message_chunk",
                "agent_message_chunk",
                "tool_call",
                "tool_call_update",
                "agent_message_chunk",
            ]
            assert kinds[:5] == expected
            assert second_editor.updates("user_message_chunk")[0]["content"]["text"] == "first words"
            assert second_editor.updates("tool_call_update")[0]["status"] == "completed"
            await run_prompt(second_editor, session, "second words")
            assert second_editor.agent_text().endswith("more")
        finally:
            await second_editor.kill()


async def test_sessions_are_listed_with_their_folders(tmp_path: Path) -> None:
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    async with open_editor(tmp_path, [text(["a"]), text(["b"])]) as (editor, session):
        other = await editor.new_session(other_folder)
        await run_prompt(editor, session, "one")
        await run_prompt(editor, other, "two")
        sessions = (await editor.call("session/list"))["sessions"]
        assert [(one["sessionId"], one["cwd"], one["title"]) for one in sessions] == [
            (other, str(other_folder), "two"),
            (session, str(editor.folder), "one"),
        ]
        folder_sessions = (await editor.call("session/list", cwd=str(editor.folder)))["sessions"]
        assert [one["sessionId"] for one in folder_sessions] == [session]


async def test_each_session_works_in_its_own_folder(tmp_path: Path) -> None:
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    async with open_editor(tmp_path, [call_shell("pwd > here"), text(["ok"])] * 2) as (editor, session):
        other = await editor.new_session(other_folder)
        await run_prompt(editor, session, "one")
        await run_prompt(editor, other, "two")
        for folder in (editor.folder, other_folder):
            assert (folder / "here").read_text().strip() == str(folder)


async def test_cancel_in_one_session_does_not_affect_other_sessions(tmp_path: Path) -> None:
    script = [choose_by_prompt(hang=hanging(2), talk=text(["fine"]))] * 3
    async with open_editor(tmp_path, script) as (editor, first):
        second = await editor.new_session()
        hanging_one, hanging_two = editor.make_prompt(first, "hang"), editor.make_prompt(second, "hang")
        editor.send(hanging_one, hanging_two)
        await editor.wait_for_message(
            lambda _: "tok1" in editor.agent_text(first) and "tok1" in editor.agent_text(second)
        )
        editor.send(editor.make_cancel(first))
        assert await editor.wait_for_stop_reason(hanging_one) == "cancelled"
        talk = editor.make_prompt(first, "talk")
        editor.send(talk)
        await editor.wait_for_response(talk)
        assert not any(message.get("id") == hanging_two["id"] for message in editor.received)
        editor.send(editor.make_cancel(second))
        assert await editor.wait_for_stop_reason(hanging_two) == "cancelled"


async def test_prompt_and_cancel_sent_right_after_a_load_keep_their_order(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [text(["a"]), text(["b"])]) as (editor, session):
        await run_prompt(editor, session, "one")
        await editor.close_input()
        second_editor = Editor(editor.home, editor.folder, editor.server)
        await second_editor.start()
        try:
            load = second_editor.make_request("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[])
            first, second = second_editor.make_prompt(session, "two"), second_editor.make_prompt(session, "three")
            second_editor.send(load, first, second_editor.make_cancel(session), second)
            assert "result" in await second_editor.wait_for_response(load)
            assert await second_editor.wait_for_stop_reason(first) == "cancelled"
            assert await second_editor.wait_for_stop_reason(second) == "end_turn"
        finally:
            await second_editor.kill()


async def test_invalid_requests_are_rejected_with_an_error_code(tmp_path: Path) -> None:
    async with open_editor(tmp_path, []) as (editor, session):
        requests = [
            editor.make_request("session/load", sessionId="unknown", cwd=str(editor.folder), mcpServers=[]),
            editor.make_prompt("unknown", "go"),
            editor.make_request("session/new", cwd="not/absolute", mcpServers=[]),
            editor.make_request("session/new", cwd=str(tmp_path / "nowhere"), mcpServers=[]),
            editor.make_request("session/prompt", sessionId=session, prompt=[]),
            editor.make_request("session/prompt", sessionId=session),
            editor.make_request("session/nonsense"),
        ]
        editor.send(*requests)
        errors = [(await editor.wait_for_response(request))["error"] for request in requests]
        assert [error["code"] for error in errors] == [-32002, -32002, -32602, -32602, -32602, -32602, -32601]
        assert "unknown" in errors[0]["message"]


async def test_closing_a_session_ends_its_prompt_and_the_session_can_be_resumed(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [hanging(1), text(["fine"])]) as (editor, session):
        prompt = editor.make_prompt(session, "go")
        editor.send(prompt)
        await editor.wait_for_update("agent_message_chunk")
        await editor.call("session/close", sessionId=session)
        assert await editor.wait_for_stop_reason(prompt) == "cancelled"
        await editor.call("session/resume", sessionId=session, cwd=str(editor.folder), mcpServers=[])
        await run_prompt(editor, session, "again")
        assert editor.agent_text().endswith("fine")


async def test_mcp_server_list_may_be_omitted_from_a_new_session_request(tmp_path: Path) -> None:
    async with open_editor(tmp_path, [text(["fine"])]) as (editor, _):
        session = (await editor.call("session/new", cwd=str(editor.folder)))["sessionId"]
        await run_prompt(editor, session, "go")
        assert editor.agent_text(session) == "fine"
