"""`hark` in a pseudo-terminal: live from the first key, interrupted by typing, and always a way out."""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, opened, shell_call
from tests.fakes.models.behaviours import Behaviour, echo, hanging, silent, text
from tests.surfaces.terminal.pseudo_terminal import Terminal, terminal
from tests.tools.context import is_living
from tests.waiting import at_most, until

ALLOW_ALL = '[approvals]\nmode = "all"\n'
READY = "Enter sends"
USUAL_MODES: set[str] = {"?7", "?25"}  # the line wraps and the cursor is seen, as in any terminal
EXIT_SECONDS = at_most(6.0)

WITH_A_TOOL = """
import asyncio, functools, sys, time
import hark.cli.terminal as there
from hark.cli.main import main

async def wedge() -> str:
    "Hold the event loop itself, which no cancel can reach."
    open("wedged", "w").close()
    while True:
        time.sleep(60)

async def cling() -> str:
    "Hold it when it is asked to end."
    try:
        await asyncio.sleep(600)
    finally:
        time.sleep(600)

there.open_agent = functools.partial(there.open_agent, tools=[wedge, cling])
sys.exit(main())
"""

WITH_A_FAULT = """
import sys
from hark.surfaces.terminal.widgets.footer import footer_words
import hark.surfaces.terminal.app as there
from hark.cli.main import main

faults = [1] * int(sys.argv.pop(1))

def failing(app):
    if app.composer.text == "boom" and faults:
        faults.pop()
        raise ValueError("a fault of ours")
    return footer_words(app)

there.footer_words = failing
sys.exit(main())
"""


@asynccontextmanager
async def desk(
    tmp_path: Path, script: Sequence[Behaviour], settings: str = "", *words: str, code: Sequence[str] = ()
) -> AsyncGenerator[tuple[Hark, Terminal]]:
    """`hark --session demo` in a terminal; `code` is run instead of the command."""
    async with opened(tmp_path, script) as hark:
        hark.configure(settings)
        command = (sys.executable, "-c", *code) if code else (sys.executable, "-m", "hark.cli.main")
        words = words or ("--session", "demo")
        async with terminal(hark.environment, words, command=command, directory=str(hark.home)) as one:
            yield hark, one


async def leave(one: Terminal) -> int:
    one.type("\x03")
    await one.until("Once more leaves")
    one.type("\x03")
    return await one.left()


def composed(one: Terminal) -> str:
    """What stands in the input line, its rows put together."""
    lines = [line.strip() for line in one.screen.lines]
    tops = [place for place, line in enumerate(lines) if line.startswith("───")]
    return "".join(lines[tops[-1] + 1 : -1]) if tops else ""


def assert_restored(one: Terminal) -> None:
    assert one.modes == one.usual
    assert not one.screen.is_other
    assert one.screen.modes <= USUAL_MODES


def calls(name: str) -> Behaviour:
    """A reply that asks for one call of this tool."""
    from tests.fakes.models.behaviours import call, delta, events

    return events([delta(tool_calls=[call(0, "call_1", name, "{}")]), delta("tool_calls")])


async def test_all_that_is_typed_during_the_start_is_in_the_line_once_and_in_order(tmp_path: Path) -> None:
    typed = ""
    async with desk(tmp_path, []) as (hark, one):
        await one.until("›")  # from here on keys count
        deadline = time.monotonic() + 20
        while READY not in one.text and time.monotonic() < deadline:
            letter = "abcdefghijklmnopqrstuvwxyz"[len(typed) % 26]
            one.type(letter)
            typed += letter
            await asyncio.sleep(0.004)
        for letter in "0123456789":
            one.type(letter)
            typed += letter
        await one.until(lambda: composed(one) == typed)
        assert hark.server.requests == []
        one.type("\x03")
        assert await leave(one) == 0
        assert_restored(one)


async def test_enter_during_the_start_sends_what_stands_before_it_once(tmp_path: Path) -> None:
    async with desk(tmp_path, [text(["hello to you"])]) as (hark, one):
        await one.until("›")
        one.type("good morning\r")
        await asyncio.sleep(0.05)
        one.type("and then")
        await one.until("hello to you")
        await one.until("and then")
        assert len(hark.server.requests) == 1
        assert hark.server.requests[0].body["messages"][-1]["content"] == "good morning"


async def test_ctrl_c_during_the_start_leaves_and_gives_the_terminal_back(tmp_path: Path) -> None:
    async with desk(tmp_path, []) as (_, one):
        await one.until("›")
        one.type("\x03")
        assert await one.left() == 130
        assert_restored(one)


async def test_settings_that_can_not_be_used_are_told_on_a_terminal_as_it_was(tmp_path: Path) -> None:
    async with desk(tmp_path, [], "[limits]\nsteps = 'many'\n") as (_, one):
        assert await one.left() == 2
        await one.until("steps")
        assert_restored(one)


async def test_a_message_interrupts_a_shell_command_and_its_tree_is_dead(tmp_path: Path) -> None:
    script = [shell_call("sleep 987 & sleep 988"), text(["the other thing"])]
    async with desk(tmp_path, script, ALLOW_ALL) as (hark, one):
        await one.until(READY)
        one.type("long work\r")
        await one.until("running shell")
        await one.until(lambda: bool(processes("sleep 98")))
        one.type("no, this instead\r")
        await hark.server.request(2)
        await one.until("the other thing")
        await one.until("interrupted turn 1 in")
        assert "stopped in" in one.text
        assert processes("sleep 98") == []
        assert await leave(one) == 0
        assert_restored(one)


async def test_esc_stops_a_silent_model_and_typing_goes_on(tmp_path: Path) -> None:
    async with desk(tmp_path, [silent(), echo()]) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await hark.server.request(1)
        one.type("half a thou")
        await one.until("half a thou")
        one.type("\x1b")
        await one.until("stopped in")
        await asyncio.wait_for(hark.server.requests[0].left.wait(), at_most(5))
        one.type("ght\r")
        await hark.server.request(2)
        assert hark.server.requests[1].body["messages"][-1]["content"] == "half a thought"


async def test_a_paste_of_ten_thousand_lines_arrives_whole(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number} äöü 漢字" for number in range(10_000))
    async with desk(tmp_path, [text(["got it"])]) as (hark, one):
        await one.until(READY)
        await one.paste(pasted)
        await one.until("line 9999")
        one.type(" and more")
        await one.until("and more")
        one.type("\r")
        await hark.server.request(1)
        assert hark.server.requests[0].body["messages"][-1]["content"] == f"{pasted} and more"
        await one.until("got it")


async def test_no_escape_sequence_of_others_reaches_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b31m\x1b[2J\x1bP1;2|x\x1b\\\u202eabc\r\x07end"
    printf = "printf '\\033]0;owned\\007\\033[31mplain\\033[0m\\033[?1049l\\n'"
    async with desk(tmp_path, [shell_call(printf), text([evil])], ALLOW_ALL) as (_, one):
        await one.until(READY)
        one.type("go\r")
        await one.until("done in")
        await one.until("plain")
        assert b"]0;owned\x07" not in bytes(one.written)
        assert b"\xe2\x80\xae" not in bytes(one.written)
        assert one.screen.is_other
        assert [part for part in one.screen.unknown if part != b"\x1b]22;default\x07"] == []  # the mouse's shape
        assert one.screen.rang == 0


async def test_what_was_not_sent_is_there_again_after_an_exit(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as hark:
        for expected in ("", "an unfinished sentence"):
            async with terminal(hark.environment, directory=str(hark.home)) as one:
                await one.until(READY)
                if expected:
                    await one.until(expected)
                else:
                    one.type("an unfinished sentence")
                    await one.until("an unfinished sentence")
                one.process.terminate()
                assert await one.left() == 143
                assert_restored(one)


async def test_a_resize_keeps_the_text_and_fits_the_screen(tmp_path: Path) -> None:
    async with desk(tmp_path, [text([f"word{number} " for number in range(200)])]) as (_, one):
        await one.until(READY)
        one.type("go\r")
        await one.until("done in")
        one.type("my text")
        await one.until("my text")
        for size in ((40, 12), (20, 6), (132, 50), (80, 24)):
            one.resize(*size)
            await one.until(lambda: "my text" in one.text and ("word199" in one.text or "tokens" in one.text))
            assert all(len(line) <= size[0] for line in one.screen.lines)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)])
async def test_a_signal_settles_the_turn_and_gives_the_terminal_back(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with desk(tmp_path, [shell_call(f"sleep {9800 + number}")], ALLOW_ALL) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await one.until(lambda: bool(processes(f"sleep {9800 + number}")))
        one.process.send_signal(number)
        assert await one.left() == code
        assert_restored(one)
        assert processes(f"sleep {9800 + number}") == []
        shown = await hark.run("sessions", "show", "demo")
    assert "This turn was interrupted" in shown.out


async def test_a_closed_window_settles_the_turn_and_leaves_no_process(tmp_path: Path) -> None:
    async with desk(tmp_path, [shell_call("sleep 985")], ALLOW_ALL) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await one.until(lambda: bool(processes("sleep 985")))
        one.close()
        assert await one.left(EXIT_SECONDS) == 143
        assert processes("sleep 985") == []
        shown = await hark.run("sessions", "show", "demo")
    assert "This turn was interrupted" in shown.out


async def test_a_tool_that_holds_the_loop_can_not_hold_the_person(tmp_path: Path) -> None:
    async with desk(tmp_path, [calls("wedge")], ALLOW_ALL, code=[WITH_A_TOOL]) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await until((hark.home / "wedged").exists)
        one.type("\x03")
        await one.until("Ctrl+C once more leaves", at_most(2))
        sent = one.type("\x03")
        await one.until("Shutting down", at_most(2))
        assert await one.left(EXIT_SECONDS) == 70
        assert time.perf_counter() - sent < EXIT_SECONDS
        assert_restored(one)


async def test_a_third_ctrl_c_leaves_a_held_loop_at_once(tmp_path: Path) -> None:
    settings = f"{ALLOW_ALL}[limits]\nexit_seconds = 60\n"
    async with desk(tmp_path, [calls("wedge")], settings, code=[WITH_A_TOOL]) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await until((hark.home / "wedged").exists)
        one.type("\x03")
        await one.until("Ctrl+C once more leaves", at_most(2))
        one.type("\x03")
        await one.until("Shutting down", at_most(2))
        sent = one.type("\x03")
        assert await one.left() in (130, 70)
        assert time.perf_counter() - sent < at_most(1.5)
        assert_restored(one)


async def test_a_clean_up_that_never_ends_is_named_and_cut(tmp_path: Path) -> None:
    settings = f"{ALLOW_ALL}[limits]\nexit_seconds = 1.5\n"
    async with desk(tmp_path, [calls("cling")], settings, code=[WITH_A_TOOL]) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await one.until("running cling")
        sent = one.type("\x04")
        said = await one.until("Shutting down", at_most(3))
        assert said - sent < at_most(1.0)
        assert await one.left(EXIT_SECONDS) == 70
        assert_restored(one)
        assert len(hark.server.requests) == 1


async def test_a_terminal_that_takes_nothing_holds_up_neither_the_agent_nor_the_exit(tmp_path: Path) -> None:
    flood = text(["x" * 2_000 + "\n\n" for _ in range(400)])
    async with desk(tmp_path, [flood, hanging(1)], "[limits]\nexit_seconds = 1.5\n") as (hark, one):
        await one.until(READY)
        one.stall()
        one.type("a flood\r")
        await hark.server.request(1)
        await asyncio.sleep(0.5)
        one.type("and now hang\r")
        await hark.server.request(2)  # a screen that hangs is no reason to hear nothing
        one.process.terminate()
        assert await one.left(EXIT_SECONDS) in (143, 70)
        one.go_on()
        shown = await hark.run("sessions", "show", "demo")
    assert "and now hang" in shown.out


async def test_a_terminal_that_goes_on_shows_the_newest_state(tmp_path: Path) -> None:
    flood = text(["y" * 200 + "\n\n" for _ in range(2_000)])
    async with desk(tmp_path, [flood, text(["here I am"])]) as (hark, one):
        await one.until(READY)
        one.stall()
        one.type("a flood\r")
        await hark.server.request(1)
        await asyncio.sleep(1.0)
        one.go_on()
        one.type("and?\r")
        await one.until("here I am")
        assert "› and?" in one.text


async def test_a_fault_on_the_screen_costs_neither_the_session_nor_the_text(tmp_path: Path) -> None:
    async with desk(tmp_path, [silent(), echo()], code=[WITH_A_FAULT, "1"]) as (hark, one):
        await one.until(READY)
        one.type("go\r")
        await hark.server.request(1)
        one.type("boom")
        await one.until("The screen had to be drawn anew")
        await one.until("boom")
        assert not hark.server.requests[0].left.is_set()  # the turn did not notice
        one.type(" and on\r")
        await hark.server.request(2)
        assert hark.server.requests[1].body["messages"][-1]["content"] == "boom and on"
        await one.until("done in")
        assert await leave(one) == 0
        assert_restored(one)


async def test_a_screen_that_fails_again_and_again_ends_with_words_and_a_whole_terminal(tmp_path: Path) -> None:
    async with desk(tmp_path, [], code=[WITH_A_FAULT, "100"]) as (_, one):
        await one.until(READY)
        one.type("boom")
        assert await one.left() == 1
        await one.until("hark -r demo")
        assert_restored(one)
        assert "Traceback" not in one.text


async def test_no_color_draws_none(tmp_path: Path) -> None:
    async with opened(tmp_path, [text(["# head\n\n`code` **bold**"])]) as hark:
        environment = {**hark.environment, "NO_COLOR": "1"}
        async with terminal(environment, directory=str(hark.home)) as one:
            await one.until(READY)
            one.type("go\r")
            await one.until("done in")
            drawn = bytes(one.written)
    assert not any(f"\x1b[{number}m".encode() in drawn for number in (*range(30, 38), *range(90, 98)))
    assert b"38;5;" not in drawn
    assert b"38;2;" not in drawn


def processes(words: str) -> list[str]:
    """Return the command lines of processes that have these words in them, ours not."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            except OSError:
                continue
            if line.startswith(words) and is_living(int(entry.name)):
                found.append(line)
    return found


async def test_the_text_is_edited_in_an_editor_of_ones_own(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s and the editor was here" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    async with opened(tmp_path, [echo()]) as hark:
        environment = {**hark.environment, "EDITOR": str(editor), "VISUAL": ""}
        async with terminal(environment, directory=str(hark.home)) as one:
            await one.until(READY)
            one.type("begun")
            await one.until("begun")
            one.type("\x07")
            await one.until("begun and the editor was here")
            one.type("!\r")
            await hark.server.request(1)
            said = hark.server.requests[0].body["messages"][-1]["content"]
            assert said == "begun and the editor was here!"
            await one.until("done in")
            assert await leave(one) == 0
            assert_restored(one)


async def test_random_bytes_neither_break_the_app_nor_the_terminal(tmp_path: Path) -> None:
    chance = random.Random(5)
    keys = [
        b"a",
        b"\xc3\xa4",
        "漢".encode(),
        b"\r",
        b"\t",
        b"\x1b[A",
        b"\x1b[B",
        b"\x1bOP",
        b"\x1b[15~",
        b"\x13",
        b"\x0f",
    ]
    keys += [
        b"\x1b[<0;5;5M",
        b"\x1b[<64;5;5M",
        b"\xff\xfe",
        b"\x1b[200~pasted\rtext\x1b[201~",
        b"\x1b[I",
        b"\x00",
        b"\x1b",
    ]
    async with desk(tmp_path, [hanging(3) for _ in range(400)]) as (hark, one):
        await one.until(READY)
        for _ in range(300):
            one.type(chance.choice(keys))
            if chance.random() < 0.05:
                one.resize(chance.randint(10, 120), chance.randint(4, 40))
            await asyncio.sleep(0.005)
        one.resize(80, 24)
        one.process.terminate()
        assert await one.left(EXIT_SECONDS) == 143
        assert_restored(one)
        shown = await hark.run("sessions", "show", "demo")
    assert shown.code == 0
