"""`hark` in a pseudo-terminal: usable from the first key, interruptible by typing, and always able to exit."""

import asyncio
import random
import re
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, open_hark, shell_call
from tests.fakes.models.behaviours import Behaviour, echo, hanging, silent, text
from tests.surfaces.terminal.pseudo_terminal import PseudoTerminal, open_pseudo_terminal
from tests.tools.fake_context import find_processes
from tests.waiting import at_most, until

ALLOW_ALL = '[approvals]\nmode = "all"\n'
READY = "Enter send"
DEFAULT_MODES: set[str] = {"?7", "?25"}  # line wrapping and a visible cursor, as in any terminal
EXIT_SECONDS = at_most(6.0)

PROGRAM_WITH_TOOLS = """
import asyncio, functools, sys, time
import hark.cli.chat_options as there
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

PROGRAM_WITH_FAULTS = """
import sys
from hark.surfaces.terminal.screen import ConversationScreen
from hark.cli.main import main

faults = [1] * int(sys.argv.pop(1))

draw_progress = ConversationScreen.draw_progress

def failing(screen):
    if screen.composer.text == "boom" and faults:
        faults.pop()
        raise ValueError("a fault of ours")
    draw_progress(screen)

ConversationScreen.draw_progress = failing
sys.exit(main())
"""


@asynccontextmanager
async def open_terminal_app(
    tmp_path: Path, script: Sequence[Behaviour], settings: str = "", *arguments: str, code: Sequence[str] = ()
) -> AsyncGenerator[tuple[Hark, PseudoTerminal]]:
    """Run `hark --session demo` in a pseudo-terminal. If `code` is given, run that Python code instead."""
    async with open_hark(tmp_path, script) as hark:
        hark.configure(settings)
        command = (sys.executable, "-c", *code) if code else (sys.executable, "-m", "hark.cli.main")
        arguments = arguments or ("--session", "demo")
        async with open_pseudo_terminal(hark.environment, arguments, command=command, directory=str(hark.home)) as app:
            yield hark, app


async def quit_app(app: PseudoTerminal) -> int:
    app.type("\x03")
    await app.until("Press Ctrl+C again to quit")
    app.type("\x03")
    return await app.wait_for_exit()


def read_input_line(app: PseudoTerminal) -> str:
    """Return the text in the input line, with wrapped rows joined."""
    lines = [line.strip() for line in app.screen.lines]
    tops = [index for index, line in enumerate(lines) if line.startswith("───")]
    return "".join(lines[tops[-1] + 1 : -1]) if tops else ""


def assert_restored(app: PseudoTerminal) -> None:
    assert app.settings == app.original_settings
    assert not app.screen.is_alternate_screen
    assert app.screen.modes <= DEFAULT_MODES


def call_tool(name: str) -> Behaviour:
    """Return a behaviour that replies with one call to this tool."""
    from tests.fakes.models.behaviours import call, delta, events

    return events([delta(tool_calls=[call(0, "call_1", name, "{}")]), delta("tool_calls")])


async def test_keys_typed_during_startup_appear_in_the_input_line_in_order(tmp_path: Path) -> None:
    typed = ""
    async with open_terminal_app(tmp_path, []) as (hark, app):
        await app.until("›")  # from here on keys count
        deadline = time.monotonic() + 20
        while READY not in app.text and time.monotonic() < deadline:
            letter = "abcdefghijklmnopqrstuvwxyz"[len(typed) % 26]
            app.type(letter)
            typed += letter
            await asyncio.sleep(0.004)
        for letter in "0123456789":
            app.type(letter)
            typed += letter
        await app.until(lambda: read_input_line(app) == typed)
        assert hark.server.requests == []
        app.type("\x03")
        assert await quit_app(app) == 0
        assert_restored(app)


async def test_enter_during_startup_sends_the_typed_text_once(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [text(["hello to you"])]) as (hark, app):
        await app.until("›")
        app.type("good morning\r")
        await asyncio.sleep(0.05)
        app.type("and then")
        await app.until("hello to you")
        await app.until("and then")
        assert len(hark.server.requests) == 1
        assert hark.server.requests[0].body["messages"][-1]["content"] == "good morning"


async def test_ctrl_c_during_startup_quits_and_restores_the_terminal(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, []) as (_, app):
        await app.until("›")
        app.type("\x03")
        assert await app.wait_for_exit() == 130
        assert_restored(app)


async def test_the_exit_prints_how_to_resume_a_session_with_messages(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [text(["hello to you"])]) as (_, app):
        await app.until(READY)
        app.type("good morning\r")
        await app.until("done in")
        assert await quit_app(app) == 0
        await app.until("hark: resume this session with: hark -c, or later with: hark -r demo")
        assert_restored(app)


async def test_the_exit_from_an_empty_session_prints_nothing(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, []) as (_, app):
        await app.until(READY)
        assert await quit_app(app) == 0
        assert "hark:" not in app.text


async def test_invalid_settings_are_reported_on_a_restored_terminal(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [], "[limits]\nsteps = 'many'\n") as (_, app):
        assert await app.wait_for_exit() == 2
        await app.until("steps")
        assert_restored(app)


async def test_a_message_interrupts_a_shell_command_and_kills_its_processes(tmp_path: Path) -> None:
    script = [shell_call("sleep 987 & sleep 988"), text(["the other thing"])]
    async with open_terminal_app(tmp_path, script, ALLOW_ALL) as (hark, app):
        await app.until(READY)
        app.type("long work\r")
        await app.until("Running shell")
        await app.until(lambda: bool(find_sleeps(hark)))
        app.type("no, this instead\r")
        await hark.server.request(2)
        await app.until("the other thing")
        await app.until("interrupted turn 1 in")
        assert "stopped in" in app.text
        assert find_sleeps(hark) == []
        assert await quit_app(app) == 0
        assert_restored(app)


async def test_esc_stops_a_silent_model_and_the_typed_text_remains(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [silent(), echo()]) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await hark.server.request(1)
        app.type("half a thou")
        await app.until("half a thou")
        app.type("\x1b")
        await app.until("stopped in")
        await asyncio.wait_for(hark.server.requests[0].disconnected.wait(), at_most(5))
        app.type("ght\r")
        await hark.server.request(2)
        assert hark.server.requests[1].body["messages"][-1]["content"] == "half a thought"


async def test_a_paste_of_ten_thousand_lines_arrives_complete(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number} äöü 漢字" for number in range(10_000))
    async with open_terminal_app(tmp_path, [text(["got it"])]) as (hark, app):
        await app.until(READY)
        await app.paste(pasted)
        await app.until("line 9999")
        app.type(" and more")
        await app.until("and more")
        app.type("\r")
        await hark.server.request(1)
        assert hark.server.requests[0].body["messages"][-1]["content"] == f"{pasted} and more"
        await app.until("got it")


async def test_escape_sequences_in_replies_and_output_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b31m\x1b[2J\x1bP1;2|x\x1b\\\u202eabc\r\x07end"
    printf = "printf '\\033]0;owned\\007\\033[31mplain\\033[0m\\033[?1049l\\n'"
    async with open_terminal_app(tmp_path, [shell_call(printf), text([evil])], ALLOW_ALL) as (_, app):
        await app.until(READY)
        app.type("go\r")
        await app.until("done in")
        await app.until("plain")
        assert b"]0;owned\x07" not in bytes(app.output)
        assert b"\xe2\x80\xae" not in bytes(app.output)
        assert app.screen.is_alternate_screen
        assert [part for part in app.screen.unknown if part != b"\x1b]22;default\x07"] == []  # the mouse's shape
        assert app.screen.bell_count == 0


async def test_an_unsent_draft_is_restored_after_an_exit(tmp_path: Path) -> None:
    async with open_hark(tmp_path, []) as hark:
        for expected in ("", "an unfinished sentence"):
            async with open_pseudo_terminal(hark.environment, directory=str(hark.home)) as app:
                await app.until(READY)
                if expected:
                    await app.until(expected)
                else:
                    app.type("an unfinished sentence")
                    await app.until("an unfinished sentence")
                app.process.terminate()
                assert await app.wait_for_exit() == 143
                assert_restored(app)


async def test_a_resize_preserves_the_text_and_redraws_the_screen_to_fit(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [text([f"word{number} " for number in range(200)])]) as (_, app):
        await app.until(READY)
        app.type("go\r")
        await app.until("done in")
        app.type("my text")
        await app.until("my text")
        for size in ((40, 12), (20, 6), (132, 50), (80, 24)):
            app.resize(*size)
            await app.until(lambda: "my text" in app.text and ("word199" in app.text or "tokens" in app.text))
            assert all(len(line) <= size[0] for line in app.screen.lines)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
async def test_a_signal_settles_the_turn_and_restores_the_terminal(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with open_terminal_app(tmp_path, [shell_call(f"sleep {9800 + number}")], ALLOW_ALL) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await app.until(lambda: bool(find_sleeps(hark)))
        app.process.send_signal(number)
        assert await app.wait_for_exit() == code
        assert_restored(app)
        assert find_sleeps(hark) == []
        shown = await hark.run("sessions", "show", "demo")
    assert "This turn was interrupted" in shown.out


async def test_closing_the_window_settles_the_turn_and_leaves_no_process(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [shell_call("sleep 985")], ALLOW_ALL) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await app.until(lambda: bool(find_sleeps(hark)))
        app.close()
        assert await app.wait_for_exit(EXIT_SECONDS) == 129
        assert find_sleeps(hark) == []
        shown = await hark.run("sessions", "show", "demo")
    assert "This turn was interrupted" in shown.out


async def test_a_tool_that_blocks_the_loop_cannot_prevent_quitting(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [call_tool("wedge")], ALLOW_ALL, code=[PROGRAM_WITH_TOOLS]) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await until((hark.home / "wedged").exists)
        for key in "xy":
            app.type(key)
            await asyncio.sleep(0.3)  # long enough for a key to count as ignored, if it were Ctrl+C
        assert "not responding" not in app.text
        assert "Shutting down" not in app.text
        app.type("\x03")
        await app.until("Hark is not responding. Press Ctrl+C again to quit.", at_most(2))
        sent = app.type("\x03")
        await app.until("Shutting down", at_most(2))
        assert await app.wait_for_exit(EXIT_SECONDS) == 70
        assert time.perf_counter() - sent < EXIT_SECONDS
        assert_restored(app)


async def test_a_third_ctrl_c_quits_immediately_while_the_loop_is_blocked(tmp_path: Path) -> None:
    settings = f"{ALLOW_ALL}[limits]\nexit_seconds = 60\n"
    async with open_terminal_app(tmp_path, [call_tool("wedge")], settings, code=[PROGRAM_WITH_TOOLS]) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await until((hark.home / "wedged").exists)
        app.type("\x03")
        await app.until("Hark is not responding. Press Ctrl+C again to quit.", at_most(2))
        app.type("\x03")
        await app.until("Shutting down", at_most(2))
        sent = app.type("\x03")
        assert await app.wait_for_exit() in (130, 70)
        assert time.perf_counter() - sent < at_most(1.5)
        assert_restored(app)


async def test_a_cleanup_that_never_ends_is_reported_and_killed(tmp_path: Path) -> None:
    settings = f"{ALLOW_ALL}[limits]\nexit_seconds = 1.5\n"
    async with open_terminal_app(tmp_path, [call_tool("cling")], settings, code=[PROGRAM_WITH_TOOLS]) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await app.until("Running cling")
        sent = app.type("\x04")
        shown_at = await app.until("Shutting down", at_most(3))
        assert shown_at - sent < at_most(1.0)
        assert await app.wait_for_exit(EXIT_SECONDS) == 70
        assert_restored(app)
        assert len(hark.server.requests) == 1


async def test_a_stalled_terminal_delays_neither_the_agent_nor_the_exit(tmp_path: Path) -> None:
    flood = text(["x" * 2_000 + "\n\n" for _ in range(400)])
    async with open_terminal_app(tmp_path, [flood, hanging(1)], "[limits]\nexit_seconds = 1.5\n") as (hark, app):
        await app.until(READY)
        app.pause_output()
        app.type("a flood\r")
        await hark.server.request(1)
        await asyncio.sleep(0.5)
        app.type("and now hang\r")
        await hark.server.request(2)  # a stalled screen must not stop the input
        app.process.terminate()
        assert await app.wait_for_exit(EXIT_SECONDS) in (143, 70)
        app.resume_output()
        shown = await hark.run("sessions", "show", "demo")
    assert "and now hang" in shown.out


async def test_a_stalled_terminal_shows_the_newest_state_when_its_output_resumes(tmp_path: Path) -> None:
    flood = text(["y" * 200 + "\n\n" for _ in range(2_000)])
    async with open_terminal_app(tmp_path, [flood, text(["here I am"])]) as (hark, app):
        await app.until(READY)
        app.pause_output()
        app.type("a flood\r")
        await hark.server.request(1)
        await asyncio.sleep(1.0)
        app.resume_output()
        app.type("and?\r")
        await app.until("here I am")
        assert "› and?" in app.text


async def test_a_crash_of_the_screen_affects_neither_the_session_nor_the_draft(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [silent(), echo()], code=[PROGRAM_WITH_FAULTS, "1"]) as (hark, app):
        await app.until(READY)
        app.type("go\r")
        await hark.server.request(1)
        app.type("boom")
        await app.until("The screen was restarted")
        await app.until("boom")
        assert not hark.server.requests[0].disconnected.is_set()  # the turn was not affected
        app.type(" and on\r")
        await hark.server.request(2)
        assert hark.server.requests[1].body["messages"][-1]["content"] == "boom and on"
        await app.until("done in")
        assert await quit_app(app) == 0
        assert_restored(app)


async def test_a_screen_that_crashes_repeatedly_exits_with_a_message_and_a_restored_terminal(tmp_path: Path) -> None:
    async with open_terminal_app(tmp_path, [], code=[PROGRAM_WITH_FAULTS, "100"]) as (_, app):
        await app.until(READY)
        app.type("boom")
        assert await app.wait_for_exit() == 1
        await app.until("hark -r demo")
        assert_restored(app)
        assert "Traceback" not in app.text


async def test_the_no_color_variable_disables_colours(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["# head\n\n`code` **bold**"])]) as hark:
        environment = {**hark.environment, "NO_COLOR": "1"}
        async with open_pseudo_terminal(environment, directory=str(hark.home)) as app:
            await app.until(READY)
            app.type("go\r")
            await app.until("done in")
            drawn = bytes(app.output)
    attributes = {
        int(number) for style in re.findall(rb"\x1b\[([\d;]*)m", drawn) for number in style.split(b";") if number
    }
    assert 1 in attributes, "bold text is still bold"
    assert attributes.isdisjoint([*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)])


def find_sleeps(hark: Hark) -> list[str]:
    """Return the command lines of the live `sleep` commands that this test's agent started."""
    return [line for line in find_processes(f"HARK_HOME={hark.home}").values() if line.startswith("sleep ")]


async def test_the_input_text_can_be_edited_in_an_external_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s and the editor was here" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    async with open_hark(tmp_path, [echo()]) as hark:
        environment = {**hark.environment, "EDITOR": str(editor), "VISUAL": ""}
        async with open_pseudo_terminal(environment, directory=str(hark.home)) as app:
            await app.until(READY)
            app.type("begun")
            await app.until("begun")
            app.type("\x07")
            await app.until("begun and the editor was here")
            app.type("!\r")
            await hark.server.request(1)
            sent = hark.server.requests[0].body["messages"][-1]["content"]
            assert sent == "begun and the editor was here!"
            await app.until("done in")
            assert await quit_app(app) == 0
            assert_restored(app)


async def test_random_input_breaks_neither_the_app_nor_the_terminal(tmp_path: Path) -> None:
    randomness = random.Random(5)
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
    async with open_terminal_app(tmp_path, [hanging(3) for _ in range(400)]) as (hark, app):
        await app.until(READY)
        for _ in range(300):
            app.type(randomness.choice(keys))
            if randomness.random() < 0.05:
                app.resize(randomness.randint(10, 120), randomness.randint(4, 40))
            await asyncio.sleep(0.005)
        app.resize(80, 24)
        app.process.terminate()
        assert await app.wait_for_exit(EXIT_SECONDS) == 143
        assert_restored(app)
        shown = await hark.run("sessions", "show", "demo")
    assert shown.code == 0
