"""`hark sessions`: list, show, search, export and delete."""

from pathlib import Path

from tests.cli.command_line import open_hark, shell_call
from tests.fakes.models.behaviours import text


async def test_sessions_are_listed_most_recently_changed_first(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["a"]), text(["b"])]) as hark:
        nothing = await hark.run("sessions")
        await hark.run("-p", "older question", "--session", "old")
        await hark.run("-p", "newer question", "--session", "new-with-a-rather-long-name-here")
        listed = await hark.run("sessions")
        as_json = (await hark.run("sessions", "list", "--json")).json["sessions"]
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "No sessions yet. Start one with `hark`.\n"
    assert [line.split()[0] for line in listed.out.splitlines()] == ["new-with-a-rather-long-name-here", "old"]
    assert listed.out.splitlines()[1].endswith("1 turn   older question")
    assert [(line["session"], line["summary"]["turns"]) for line in as_json][1] == ("old", 1)


async def test_a_session_is_shown_with_its_calls_and_exported_as_a_document(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [shell_call("echo from the shell"), text(["all done"])]) as hark:
        await hark.run("-p", "do it", "--session", "demo")
        shown = await hark.run("sessions", "show", "demo")
        exported = await hark.run("sessions", "export", "demo")
        document = (await hark.run("sessions", "export", "demo", "--json")).json
    assert shown.out.startswith("demo: 1 turn, ")
    assert shown.out.endswith(exported.out)
    assert exported.out.startswith("# do it\n")
    assert "**you:** do it" in exported.out
    assert "from the shell" in exported.out
    assert (document["session"], document["title"], document["turns"]) == ("demo", "do it", 1)
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert {message["turn"] for message in document["messages"]} == {"demo.t1"}


async def test_sessions_are_found_by_words_in_their_messages(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["the colour is teal"]), text(["nothing of note"])]) as hark:
        await hark.run("-p", "which colour?", "--session", "one")
        await hark.run("-p", "what else?", "--session", "two")
        found = await hark.run("sessions", "search", "Colour TEAL")
        nothing = await hark.run("sessions", "search", "magenta")
        odd = await hark.run("sessions", "search", '"*(')
        hits = (await hark.run("sessions", "search", "teal", "--json")).json["hits"]
    head, snippet = found.out.splitlines()
    assert head.split()[0] == "one.t1"
    assert head.endswith("hark")
    assert snippet == "    the colour is teal"
    assert (nothing.code, nothing.out) == (0, "")
    assert "magenta" in nothing.err
    assert (odd.code, odd.out) == (0, "")
    assert [(hit["session"], hit["turn"], hit["who"], hit["snippet"]) for hit in hits] == [
        ("one", "one.t1", "hark", "the colour is teal")
    ]


async def test_a_deleted_session_is_gone_and_its_name_can_be_reused(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["a"]), text(["b"])]) as hark:
        await hark.run("-p", "one", "--session", "demo")
        for folder, name in (("todo", "demo.json"), ("drafts", "demo")):
            (hark.home / folder).mkdir(exist_ok=True)
            (hark.home / folder / name).write_text("[]")
        assert (await hark.run("sessions", "delete", "demo")).code == 0
        assert not (hark.home / "todo" / "demo.json").exists()
        assert not (hark.home / "drafts" / "demo").exists()
        assert (await hark.run("sessions", "search", "one")).out == ""
        assert (await hark.run("sessions")).out == ""
        assert (await hark.run("sessions", "delete", "demo")).code == 1
        again = await hark.run("-p", "two", "--session", "demo")
        assert (again.code, again.out) == (0, "b\n")
        assert len(hark.server.requests[1].body["messages"]) == 2


async def test_deleting_a_session_deletes_its_children(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["a"]), text(["b"]), text(["c"])]) as hark:
        for name in ("demo", "demo.c-call1", "demolition"):
            await hark.run("-p", "hello", "--session", name)
        listed = await hark.run("sessions")
        deleted = await hark.run("sessions", "delete", "demo", "--json")
        remaining = (await hark.run("sessions", "--json")).json["sessions"]
    assert "demo.c-call1" not in listed.out
    assert deleted.json == {"deleted": ["demo", "demo.c-call1"]}
    assert [line["session"] for line in remaining] == ["demolition"]


async def test_a_session_that_is_open_in_a_process_is_not_deleted(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [shell_call("sleep 60"), text(["done"])]) as hark:
        running = await hark.start("-p", "go", "--session", "demo", "--yes")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await hark.wait_for_request(1, running)
        refused = await hark.run("sessions", "delete", "demo")
        listed = await hark.run("sessions")
        await hark.run("stop", "demo")
        await running.wait_for_end()
        shown = await hark.run("sessions", "show", "demo")
        assert (await hark.run("sessions", "delete", "demo")).code == 0
    assert refused.code == 1
    assert refused.err.startswith("hark: demo is open in a running process. ")
    assert "[running] go" in listed.out
    assert "**you:** go" in shown.out


async def test_an_unknown_session_is_reported_in_one_sentence(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        for action in ("show", "export", "delete"):
            ended = await hark.run("sessions", action, "nope")
            assert (ended.code, ended.out) == (1, ""), action
            assert ended.err == "hark: No session named 'nope'. `hark sessions` lists them.\n", action
        without_session = await hark.run("sessions", "show")
        without_query = await hark.run("sessions", "search")
    assert (without_session.code, without_session.err) == (2, "hark: missing argument: hark sessions show SESSION\n")
    assert (without_query.code, without_query.err) == (2, "hark: missing argument: hark sessions search WORDS\n")
