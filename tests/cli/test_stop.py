"""`hark stop`: stops the turns of other processes."""

from pathlib import Path

from tests.cli.command_line import open_hark, open_owned_session
from tests.fakes.models.behaviours import hanging
from tests.waiting import at_most


async def test_stop_ends_the_turn_of_another_process_and_reports_its_outcome(tmp_path: Path) -> None:
    async with open_owned_session(tmp_path, hanging(2)) as (hark, owner):
        ended = await hark.run("stop", "demo")
        assert (ended.json["turn"], ended.json["outcome"]["type"]) == ("demo.t1", "interrupted")
        assert ended.json["timings"]["settle"] < 1000 * at_most(1)
        await owner.wait_for_line("[stopped by user")
        again = await hark.run("stop", "demo")
        assert again.json == {"session": "demo", "turn": None, "outcome": None}
        assert (await owner.wait_for_end()).code == 0


async def test_stop_all_stops_the_turns_of_all_sessions(tmp_path: Path) -> None:
    async with open_owned_session(tmp_path, hanging(2), hanging(2)) as (hark, owner):
        other = await hark.start("--plain", "--session", "other")
        other.type("more\n")
        await hark.wait_for_request(2, other)
        ended = await hark.run("stop", "--all")
        assert sorted(line["session"] for line in ended.lines) == ["demo", "other"]
        assert all(line["outcome"]["type"] == "interrupted" for line in ended.lines)
        await owner.wait_for_line("[stopped by user")
        await other.wait_for_line("[stopped by user")
        assert ((await owner.wait_for_end()).code, (await other.wait_for_end()).code) == (0, 0)


async def test_stop_requires_a_session_or_the_all_option(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        nothing = await hark.run("stop")
        both = await hark.run("stop", "demo", "--all")
    assert (nothing.code, nothing.err) == (2, "hark: name the session to stop, or use --all\n")
    assert both.code == 2
