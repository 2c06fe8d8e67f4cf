"""`hark stop`: stops the turns of other processes."""

from pathlib import Path

from tests.cli.command_line import opened, owned
from tests.fakes.models.behaviours import hanging
from tests.waiting import at_most


async def test_stop_ends_the_turn_of_another_process_and_tells_how(tmp_path: Path) -> None:
    async with owned(tmp_path, hanging(2)) as (hark, owner):
        ended = await hark.run("stop", "demo")
        assert (ended.json["turn"], ended.json["outcome"]["type"]) == ("demo.t1", "interrupted")
        assert ended.json["timings"]["settle"] < 1000 * at_most(1)
        await owner.until("[stopped by user")
        again = await hark.run("stop", "demo")
        assert again.json == {"session": "demo", "turn": None, "outcome": None}
        assert (await owner.end()).code == 0


async def test_stop_all_reaches_every_session(tmp_path: Path) -> None:
    async with owned(tmp_path, hanging(2), hanging(2)) as (hark, owner):
        other = await hark.start("--plain", "--session", "other")
        other.type("more\n")
        await hark.reached(2, other)
        ended = await hark.run("stop", "--all")
        assert sorted(line["session"] for line in ended.lines) == ["demo", "other"]
        assert all(line["outcome"]["type"] == "interrupted" for line in ended.lines)
        await owner.until("[stopped by user")
        await other.until("[stopped by user")
        assert ((await owner.end()).code, (await other.end()).code) == (0, 0)


async def test_stop_needs_to_know_what(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        nothing = await hark.run("stop")
        both = await hark.run("stop", "demo", "--all")
    assert (nothing.code, nothing.err) == (2, "hark: say which session to stop, or --all\n")
    assert both.code == 2
