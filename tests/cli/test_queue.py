"""`hark queue`: the queue of a session, whichever process owns it."""

from pathlib import Path

from tests.cli.command_line import opened, owned
from tests.fakes.models.behaviours import hanging, text


async def test_a_queue_can_be_changed_while_another_process_works(tmp_path: Path) -> None:
    async with owned(tmp_path, hanging(2), text(["third"])) as (hark, owner):
        for number in (1, 2, 3):
            await hark.run("send", "demo", f"message {number}", "--delivery", "queue", "--id", f"m{number}")
        assert (await hark.run("queue", "demo", "edit", "m2", "better")).code == 0
        assert (await hark.run("queue", "demo", "move", "m3", "1")).code == 0
        assert (await hark.run("queue", "demo", "withdraw", "m1")).code == 0
        listed = (await hark.run("queue", "demo")).json["queue"]
        assert [(item["id"], item["text"]) for item in listed] == [("m3", "message 3"), ("m2", "better")]
        owner.process.terminate()
        assert (await owner.end()).code == 143
        kept = (await hark.run("queue", "demo")).json["queue"]
        assert [item["id"] for item in kept] == ["m3", "m2"]


async def test_a_queue_that_nobody_owns_can_be_changed_too(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["yes"])]) as hark:
        for number in (1, 2):
            await hark.run("send", "demo", f"message {number}", "--delivery", "queue", "--id", f"m{number}")
        assert (await hark.run("queue", "demo", "withdraw", "m1")).code == 0
        assert (await hark.run("queue", "demo", "edit", "m2", "better")).code == 0
        listed = (await hark.run("queue", "demo")).json["queue"]
        assert [(item["id"], item["text"]) for item in listed] == [("m2", "better")]
        gone = await hark.run("queue", "demo", "withdraw", "m1")
        assert (gone.code, gone.err) == (1, "hark: That message does not wait any more, or never did.\n")


async def test_a_change_of_the_queue_that_says_too_little_is_bad_usage(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        for words in (["edit"], ["edit", "m1"], ["move", "m1", "first"], ["withdraw"]):
            ended = await hark.run("queue", "demo", *words)
            assert ended.code == 2, words
            assert ended.err.startswith("hark: say "), words
            assert len(ended.err.splitlines()) == 1, words
