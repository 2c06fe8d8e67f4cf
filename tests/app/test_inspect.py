"""`hark sessions` and `trace`: a look at what is there."""

from pathlib import Path

from tests.app.command_line import opened, shell_call
from tests.fakes.behaviours import text


async def test_sessions_are_listed_with_the_last_changed_first(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["a"]), text(["b"])]) as hark:
        await hark.run("-p", "older question", "--session", "old")
        await hark.run("-p", "newer question", "--session", "new")
        listed = await hark.run("sessions")
        as_json = (await hark.run("sessions", "list", "--json")).json["sessions"]
    assert [line.split()[0] for line in listed.out.splitlines()] == ["new", "old"]
    assert "older question" in listed.out
    assert [(line["session"], line["summary"]["turns"]) for line in as_json] == [("new", 1), ("old", 1)]


async def test_a_session_is_shown_with_its_calls(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell_call("echo from the shell"), text(["all done"])]) as hark:
        await hark.run("-p", "do it", "--session", "demo")
        shown = await hark.run("sessions", "show", "demo")
        exported = await hark.run("sessions", "export", "demo")
        messages = (await hark.run("sessions", "show", "demo", "--json")).json["messages"]
    assert "**you:** do it" in shown.out
    assert "from the shell" in shown.out
    assert exported.out == shown.out
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert {message["turn"] for message in messages} == {"demo.t1"}


async def test_sessions_are_found_by_their_words(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["the colour is teal"]), text(["nothing of note"])]) as hark:
        await hark.run("-p", "which colour?", "--session", "one")
        await hark.run("-p", "what else?", "--session", "two")
        found = await hark.run("sessions", "search", "Colour TEAL")
        nothing = await hark.run("sessions", "search", "magenta")
    assert [line.split()[0] for line in found.out.splitlines()] == ["one"]
    assert (nothing.code, nothing.out) == (0, "")


async def test_a_deleted_session_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["a"]), text(["b"])]) as hark:
        await hark.run("-p", "one", "--session", "demo")
        assert (await hark.run("sessions", "delete", "demo")).code == 0
        assert (await hark.run("sessions")).out == ""
        assert (await hark.run("sessions", "delete", "demo")).code == 1
        again = await hark.run("-p", "two", "--session", "demo")
        assert (again.code, again.out) == (0, "b\n")
        assert len(hark.server.requests[1].body["messages"]) == 2


async def test_what_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        for words in (["sessions", "show", "nope"], ["sessions", "delete", "nope"], ["trace", "nope"]):
            ended = await hark.run(*words)
            assert (ended.code, ended.out) == (1, ""), words
            assert ended.err == "hark: there is no nope; `hark sessions` lists what there is\n", words
        unsaid = await hark.run("sessions", "show")
    assert (unsaid.code, unsaid.err) == (2, "hark: say what to show: hark sessions show SESSION\n")


async def test_a_trace_shows_where_the_time_went(tmp_path: Path) -> None:
    async with opened(tmp_path, [shell_call("sleep 0.2"), text(["done"])]) as hark:
        await hark.run("-p", "go", "--session", "demo")
        traced = await hark.run("trace", "demo")
        named = await hark.run("trace", "demo", "demo.t1")
        unknown = await hark.run("trace", "demo", "demo.t9")
    assert traced.out.startswith("demo.t1: ")
    assert [line.split()[:2] for line in traced.out.splitlines()[1:]] == [
        ["model", "main"],
        ["tool", "shell"],
        ["model", "main"],
    ]
    assert named.out == traced.out
    assert unknown.code == 1
