"""`hark queue`: the queue of a session, whichever process owns it."""

from pathlib import Path

from tests.cli.command_line import open_hark, open_owned_session
from tests.fakes.models.behaviours import hanging, text


async def test_the_queue_of_another_process_can_be_changed(tmp_path: Path) -> None:
    async with open_owned_session(tmp_path, hanging(2), text(["third"])) as (hark, owner):
        for number in (1, 2, 3):
            await hark.run("send", "demo", f"message {number}", "--delivery", "queue", "--id", f"m{number}")
        assert (await hark.run("queue", "demo", "edit", "m2", "better")).code == 0
        assert (await hark.run("queue", "demo", "move", "m3", "1")).code == 0
        assert (await hark.run("queue", "demo", "withdraw", "m1")).code == 0
        listed = (await hark.run("queue", "demo")).json["queue"]
        assert [(item["id"], item["text"]) for item in listed] == [("m3", "message 3"), ("m2", "better")]
        owner.process.terminate()
        assert (await owner.wait_for_end()).code == 143
        remaining = (await hark.run("queue", "demo")).json["queue"]
        assert [item["id"] for item in remaining] == ["m3", "m2"]


async def test_the_queue_of_an_unowned_session_can_be_changed(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["yes"])]) as hark:
        for number in (1, 2):
            await hark.run("send", "demo", f"message {number}", "--delivery", "queue", "--id", f"m{number}")
        assert (await hark.run("queue", "demo", "withdraw", "m1")).code == 0
        assert (await hark.run("queue", "demo", "edit", "m2", "better")).code == 0
        listed = (await hark.run("queue", "demo")).json["queue"]
        assert [(item["id"], item["text"]) for item in listed] == [("m2", "better")]
        refused = await hark.run("queue", "demo", "withdraw", "m1")
        assert (refused.code, refused.err) == (1, "hark: That message is not in the queue.\n")


async def test_incomplete_queue_commands_are_usage_errors(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        for arguments in (["edit"], ["edit", "m1"], ["move", "m1", "first"], ["withdraw"]):
            ended = await hark.run("queue", "demo", *arguments)
            assert ended.code == 2, arguments
            assert ended.err.startswith("hark: missing "), arguments
            assert len(ended.err.splitlines()) == 1, arguments
