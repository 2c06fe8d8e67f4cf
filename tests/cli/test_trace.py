"""`hark trace`: in the terminal, as an HTML page, and as JSON."""

from pathlib import Path

import pytest

from tests.cli.command_line import open_hark, shell_call
from tests.cli.pseudo_terminal import run_in_terminal
from tests.fakes.models.behaviours import text


async def test_a_trace_lists_the_prompt_model_calls_and_tool_calls_of_a_turn(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [shell_call("sleep 0.2"), text(["done"])]) as hark:
        await hark.run("-p", "go", "--session", "demo", "--yes")
        traced = await hark.run("trace", "demo")
        named = [await hark.run("trace", "demo", turn) for turn in ("demo.t1", "t1", "1")]
        unknown = await hark.run("trace", "demo", "9")
        missing = await hark.run("trace", "nope")
    assert traced.out.startswith("demo.t1  ")
    assert "\x1b" not in traced.out
    rows = [line.split()[0] for line in traced.out.splitlines()[5:]]
    assert [row for row in rows if row != "snapshot"] == ["prompt", "model", "shell", "model"]
    assert {ended.out for ended in named} == {traced.out}
    assert (unknown.code, unknown.err) == (1, "hark: demo has no turn 9; its last turns are: t1\n")
    assert (missing.code, missing.err) == (1, "hark: No session named 'nope'. `hark sessions` lists them.\n")


async def test_an_interrupt_is_drawn_with_its_settle_time(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [shell_call("sleep 60")]) as hark:
        running = await hark.start("-p", "go", "--session", "demo", "--yes", "--output", "events")
        assert running.process.stdin is not None
        running.process.stdin.close()
        await running.wait_for_line("call.started")
        await hark.run("stop", "demo")
        await running.wait_for_end()
        traced = await hark.run("trace", "demo")
        (turn,) = (await hark.run("trace", "demo", "--json")).json["turns"]
    assert "interrupted by user" in traced.out
    assert "▲" in traced.out
    assert "from the interrupt to the end of the turn, of which:" in traced.out
    assert turn["outcome"] == {"type": "interrupted", "source": "user"}
    assert turn["parts"][-1]["name"] == "shell"
    assert turn["parts"][-1]["settle"] > 0


async def test_an_html_page_is_written_for_one_turn_or_all_turns(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["one"]), text(["two"])]) as hark:
        await hark.run("-p", "first", "--session", "demo")
        await hark.run("-p", "second", "--session", "demo")
        single = await hark.run("trace", "demo", "--html", "one.html")
        await hark.run("trace", "demo", "--all", "--html", "all.html")
        listed = await hark.run("trace", "demo", "--all")
        refused = await hark.run("trace", "demo", "--html", "no/where.html")
        pages = [(hark.home / name).read_text() for name in ("one.html", "all.html")]
    assert (single.code, single.out) == (0, "Written to one.html\n")
    assert [page.count('<section class="turn"') for page in pages] == [1, 2]
    assert [line.split()[0] for line in listed.out.splitlines()[:2]] == ["t1", "t2"]
    assert (refused.code, refused.err) == (1, "hark: can't write no/where.html: No such file or directory\n")


@pytest.mark.parametrize(
    ("term", "no_colour", "has_colour"), [("xterm", "", True), ("xterm", "1", False), ("dumb", "", False)]
)
async def test_a_trace_in_a_terminal_is_coloured_unless_colours_are_disabled(
    tmp_path: Path, term: str, no_colour: str, has_colour: bool
) -> None:
    async with open_hark(tmp_path, [text(["one"])]) as hark:
        await hark.run("-p", "first", "--session", "demo")
        shown = (await run_in_terminal(hark, "trace", "demo", TERM=term, NO_COLOR=no_colour)).out
    assert "demo.t1" in shown
    assert ("\x1b[" in shown) is has_colour
