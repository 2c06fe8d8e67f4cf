"""A turn's timeline in letters fits its place, and nothing in it commands the terminal."""

import pytest

from hark.protocol.messages import AssistantMessage, Call, UserMessage
from hark.protocol.records import AnyRecord, CallStarted, Replied, TurnStarted
from hark.text.columns import TerminalStyle, width
from hark.trace.terminal import trace_text, turns_text
from tests.trace.example_turn import AT, CHILD, child, rich

ESCAPE = "\x1b"


@pytest.mark.parametrize("columns", [40, 50, 79, 80, 81, 120, 160])
@pytest.mark.parametrize("has_unicode", [True, False])
def test_no_line_is_wider_than_the_place(columns: int, has_unicode: bool) -> None:
    look = TerminalStyle(columns, has_unicode=has_unicode)
    for text in (*(trace_text(rich(), name, {CHILD: child()}, look) for name in "123"), turns_text(rich(), look)):
        assert max(width(line) for line in text.splitlines()) <= columns, text
        assert has_unicode or text.isascii()


def test_it_shows_what_ran_what_came_and_what_the_interrupt_cost() -> None:
    text = trace_text(rich(), "2", {CHILD: child()})
    assert text.startswith("demo.t2  ")
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "interrupted by new message, 10.0 s" in lines
    assert "▓" in lines["shell python -m pytes…"]
    assert "failed" in lines["shell python -m pytes…"]
    assert "◆" in lines["steer at 4.00 s"]
    assert "settled in 14 ms (shell 12 ms) ▲" in lines["stopped at 10.0 s"]
    assert "14 ms from the interrupt to the end of the turn, of which:" in lines
    assert "steered into step 2, after 3.45 s" in text
    assert "7,210 in (5,948 cached), 170" in text
    assert "$0.0312" in text


def test_colours_are_there_only_when_they_are_wanted() -> None:
    assert ESCAPE not in trace_text(rich(), "2") + turns_text(rich())
    assert f"{ESCAPE}[32m▓" in trace_text(rich(), "2", look=TerminalStyle(has_colour=True))
    assert f"{ESCAPE}[34m█" in turns_text(rich(), TerminalStyle(has_colour=True))


def test_nothing_that_was_said_commands_the_terminal_or_breaks_the_lines() -> None:
    evil = "a\x1b[2J\x07\u202e\r\n日本語 " * 30
    records: list[AnyRecord] = [
        TurnStarted(turn="demo.t1", messages=(UserMessage("m", evil),), at=AT),
        Replied(turn="demo.t1", step=1, message=AssistantMessage(evil, (Call("c", evil, "{"),)), at=AT + 1),
        CallStarted(turn="demo.t1", call="c", at=AT + 1),
    ]
    text = f"{trace_text(records)}\n{turns_text(records)}"
    assert not {ESCAPE, "\x07", "\u202e", "\r"} & set(text)
    assert max(width(line) for line in text.splitlines()) <= 80


def test_what_is_not_there_is_told() -> None:
    assert trace_text([]) == "No turn has run in this session yet."
    assert trace_text(rich(), "7") == "There is no turn 7 in this session."
    assert turns_text([]) == "No turn has run in this session yet."


def test_all_turns_have_a_line_and_a_bar_each() -> None:
    lines = turns_text(rich()).splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["t1", "completed"], ["t2", "interrupted"], ["t3", "running"]]
    assert lines[1].count("█") > lines[0].count("█") > 0
    assert lines[4] == "3 turns, 11.0 s, $0.0322"
