"""`hark send`: a message to a session, whichever process owns it."""

import asyncio
from pathlib import Path

from tests.cli.command_line import gated, open_hark, open_owned_session, shell_call
from tests.fakes.models.behaviours import hanging, text


async def test_a_message_interrupts_the_turn_of_the_process_that_owns_the_session(tmp_path: Path) -> None:
    async with open_owned_session(tmp_path, hanging(2), text(["redirected"])) as (hark, owner):
        ended = await hark.run("send", "demo", "no, this")
        assert ended.json["state"] == "interrupting"
        assert ended.json["turn"] == "demo.t1"
        await owner.wait_for_line("redirected")
        assert (await owner.wait_for_end()).code == 0
        assert hark.server.requests[1].body["messages"][-1]["content"] == "no, this"


async def test_a_message_can_be_queued_after_the_turn_of_another_process(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with open_owned_session(tmp_path, gated(gate, "first answer"), text(["second answer"])) as (hark, owner):
        ended = await hark.run("send", "demo", "second", "--delivery", "queue")
        assert (ended.json["state"], ended.json["position"]) == ("queued", 1)
        gate.set()
        await owner.wait_for_line("first answer")
        await owner.wait_for_line("second answer")
        assert (await owner.wait_for_end()).code == 0


async def test_a_message_can_steer_the_turn_of_another_process(tmp_path: Path) -> None:
    async with open_owned_session(tmp_path, shell_call("until [ -e go ]; do sleep 0.02; done"), text(["steered"])) as (
        hark,
        owner,
    ):
        ended = await hark.run("send", "demo", "mind this", "--delivery", "steer")
        assert (ended.json["state"], ended.json["turn"]) == ("steering", "demo.t1")
        (hark.home / "go").touch()
        await owner.wait_for_line("steered")
        assert (await owner.wait_for_end()).code == 0
        contents = [message["content"] for message in hark.server.requests[1].body["messages"]]
        assert contents[-1] == "mind this"


async def test_the_first_message_to_an_idle_owner_gets_its_receipt(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["hello"])]) as hark:
        owner = await hark.start("--plain", "--session", "demo")
        await owner.wait_for_line("session demo")
        ended = await hark.run("send", "demo", "anyone?")
        assert (ended.code, ended.json["state"]) == (0, "started")
        await owner.wait_for_line("hello")
        assert (await owner.wait_for_end()).code == 0


async def test_without_an_owner_a_message_is_queued_and_runs_with_the_next_prompt(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["both"])]) as hark:
        sent = await hark.run("send", "demo", "left on the desk", "--id", "note-1")
        assert sent.json == {"id": "note-1", "session": "demo", "state": "queued", "position": 1}
        listed = (await hark.run("queue", "demo")).json["queue"]
        assert [(item["id"], item["state"]) for item in listed] == [("note-1", "queued")]
        ended = await hark.run("-p", "what is there to do?", "--session", "demo")
        assert (ended.code, ended.out) == (0, "both\n")
        contents = [message["content"] for message in hark.server.requests[0].body["messages"]][1:]
        assert contents == ["left on the desk", "what is there to do?"]
        assert (await hark.run("queue", "demo", "list")).json == {"queue": []}


async def test_a_message_queued_without_an_owner_runs_after_the_next_prompt_and_before_the_exit(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["mine"]), text(["the other"])]) as hark:
        await hark.run("send", "demo", "for later", "--delivery", "queue")
        ended = await hark.run("-p", "now", "--session", "demo")
        assert (ended.code, ended.out) == (0, "mine\n")
        shown = (await hark.run("sessions", "show", "demo", "--json")).json["messages"]
    assert [message["text"] for message in shown] == ["now", "mine", "for later", "the other"]


async def test_a_sent_slash_command_is_executed(tmp_path: Path) -> None:
    async with open_owned_session(tmp_path, hanging(2)) as (hark, owner):
        queued = await hark.run("send", "demo", "/queue for later")
        assert (queued.json["state"], queued.json["position"]) == ("queued", 1)
        edited = await hark.run("send", "demo", "/queue 1 edit much later")
        assert [item["text"] for item in edited.json["queue"]] == ["much later"]
        assert (await hark.run("send", "demo", "/queue 1 drop")).json == {"queue": []}
        stopped = await hark.run("send", "demo", "/stop")
        assert (stopped.json["turn"], stopped.json["outcome"]["type"]) == ("demo.t1", "interrupted")
        await owner.wait_for_line("[stopped by user")
        assert (await owner.wait_for_end()).code == 0
        assert len(hark.server.requests) == 1


async def test_a_slash_command_that_needs_the_owner_is_refused_and_not_sent(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        ended = await hark.run("send", "demo", "/reset")
        assert (ended.code, ended.out) == (2, "")
        assert "/reset can't be run by `hark send`" in ended.err
        assert (await hark.run("queue", "demo")).json == {"queue": []}
        path = await hark.run("send", "demo", "/etc/hosts is what I mean")
        assert path.json["state"] == "queued"


async def test_a_message_with_a_reused_id_is_reported_as_a_duplicate(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        await hark.run("send", "demo", "once", "--id", "note-1")
        again = await hark.run("send", "demo", "once", "--id", "note-1")
        listed = (await hark.run("queue", "demo")).json["queue"]
    assert again.json["state"] == "duplicate"
    assert len(listed) == 1
