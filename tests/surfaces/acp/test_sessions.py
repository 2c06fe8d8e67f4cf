"""Sessions of an editor: made, listed, loaded, side by side, each in its folder."""

from pathlib import Path

from tests.fakes.models.behaviours import Behaviour, Exchange, hanging, text
from tests.interrupts.points import shell
from tests.surfaces.acp.editor import Editor, opened


async def run(editor: Editor, session: str, words: str) -> None:
    prompt = editor.prompt(session, words)
    editor.send(prompt)
    assert await editor.stop_reason(prompt) == "end_turn"


def by_prompt(**plays: Behaviour) -> Behaviour:
    """The behaviour that the prompt names."""

    async def play(exchange: Exchange) -> None:
        await plays[exchange.speaker.prompt(exchange.seen.body)](exchange)

    return play


async def test_a_loaded_session_shows_its_past_before_it_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell("echo out"), text(["done"]), text(["more"])]) as (editor, session):
        await run(editor, session, "first words")
        await editor.leave()
        again = Editor(editor.home, editor.folder, editor.server)
        await again.start()
        try:
            await again.ask("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[])
            kinds = [update["sessionUpdate"] for update in again.updates()]
            expected = [
                "user_message_chunk",
                "agent_message_chunk",
                "tool_call",
                "tool_call_update",
                "agent_message_chunk",
            ]
            assert kinds[:5] == expected
            assert again.updates("user_message_chunk")[0]["content"]["text"] == "first words"
            assert again.updates("tool_call_update")[0]["status"] == "completed"
            await run(again, session, "second words")
            assert again.text().endswith("more")
        finally:
            await again.end()


async def test_sessions_are_listed_with_their_folders(tmp_path: Path) -> None:
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    async with opened(tmp_path, [text(["a"]), text(["b"])]) as (editor, session):
        other = await editor.new_session(other_folder)
        await run(editor, session, "one")
        await run(editor, other, "two")
        every = (await editor.ask("session/list"))["sessions"]
        assert [(one["sessionId"], one["cwd"], one["title"]) for one in every] == [
            (other, str(other_folder), "two"),
            (session, str(editor.folder), "one"),
        ]
        few = (await editor.ask("session/list", cwd=str(editor.folder)))["sessions"]
        assert [one["sessionId"] for one in few] == [session]


async def test_each_session_works_in_its_folder(tmp_path: Path) -> None:
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    async with opened(tmp_path, [shell("pwd > here"), text(["ok"])] * 2) as (editor, session):
        other = await editor.new_session(other_folder)
        await run(editor, session, "one")
        await run(editor, other, "two")
        for folder in (editor.folder, other_folder):
            assert (folder / "here").read_text().strip() == str(folder)


async def test_a_cancel_of_one_session_leaves_the_others_alone(tmp_path: Path) -> None:
    script = [by_prompt(hang=hanging(2), talk=text(["fine"]))] * 3
    async with opened(tmp_path, script) as (editor, first):
        second = await editor.new_session()
        hanging_one, hanging_two = editor.prompt(first, "hang"), editor.prompt(second, "hang")
        editor.send(hanging_one, hanging_two)
        await editor.until(lambda _: "tok1" in editor.text(first) and "tok1" in editor.text(second))
        editor.send(editor.cancel(first))
        assert await editor.stop_reason(hanging_one) == "cancelled"
        talk = editor.prompt(first, "talk")
        editor.send(talk)
        await editor.response(talk)
        assert not any(message.get("id") == hanging_two["id"] for message in editor.received)
        editor.send(editor.cancel(second))
        assert await editor.stop_reason(hanging_two) == "cancelled"


async def test_a_prompt_and_its_cancel_right_behind_a_load_keep_their_order(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["a"]), text(["b"])]) as (editor, session):
        await run(editor, session, "one")
        await editor.leave()
        again = Editor(editor.home, editor.folder, editor.server)
        await again.start()
        try:
            load = again.request("session/load", sessionId=session, cwd=str(editor.folder), mcpServers=[])
            first, second = again.prompt(session, "two"), again.prompt(session, "three")
            again.send(load, first, again.cancel(session), second)
            assert "result" in await again.response(load)
            assert await again.stop_reason(first) == "cancelled"
            assert await again.stop_reason(second) == "end_turn"
        finally:
            await again.end()


async def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (editor, session):
        wrong = [
            editor.request("session/load", sessionId="nobody", cwd=str(editor.folder), mcpServers=[]),
            editor.prompt("nobody", "go"),
            editor.request("session/new", cwd="not/absolute", mcpServers=[]),
            editor.request("session/new", cwd=str(tmp_path / "nowhere"), mcpServers=[]),
            editor.request("session/prompt", sessionId=session, prompt=[]),
            editor.request("session/prompt", sessionId=session),
            editor.request("session/nonsense"),
        ]
        editor.send(*wrong)
        errors = [(await editor.response(request))["error"] for request in wrong]
        assert [error["code"] for error in errors] == [-32002, -32002, -32602, -32602, -32602, -32602, -32601]
        assert "nobody" in errors[0]["message"]


async def test_a_closed_session_ends_its_prompt_and_can_be_resumed(tmp_path: Path) -> None:
    async with opened(tmp_path, [hanging(1), text(["fine"])]) as (editor, session):
        prompt = editor.prompt(session, "go")
        editor.send(prompt)
        await editor.update("agent_message_chunk")
        await editor.ask("session/close", sessionId=session)
        assert await editor.stop_reason(prompt) == "cancelled"
        await editor.ask("session/resume", sessionId=session, cwd=str(editor.folder), mcpServers=[])
        await run(editor, session, "again")
        assert editor.text().endswith("fine")


async def test_a_client_without_mcp_servers_need_not_say_so(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["fine"])]) as (editor, _):
        session = (await editor.ask("session/new", cwd=str(editor.folder)))["sessionId"]
        await run(editor, session, "go")
        assert editor.text(session) == "fine"
