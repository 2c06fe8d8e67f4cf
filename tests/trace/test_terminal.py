"""The text timeline of a turn fits the terminal and contains no control sequences."""

import pytest

from hark.protocol.messages import AssistantMessage, Call, UserMessage
from hark.protocol.records import AnyRecord, CallStarted, Replied, TurnStarted
from hark.text.columns import TerminalStyle, display_width
from hark.trace.terminal import render_timeline, render_turn_list
from tests.trace.example_journal import CHILD, START_TIME, child_journal, example_journal

ESCAPE = "\x1b"


@pytest.mark.parametrize("columns", [40, 50, 79, 80, 81, 120, 160])
@pytest.mark.parametrize("has_unicode", [True, False])
def test_no_line_is_wider_than_the_terminal(columns: int, has_unicode: bool) -> None:
    style = TerminalStyle(columns, has_unicode=has_unicode)
    for text in (
        *(render_timeline(example_journal(), name, {CHILD: child_journal()}, style) for name in "123"),
        render_turn_list(example_journal(), style),
    ):
        assert max(display_width(line) for line in text.splitlines()) <= columns, text
        assert has_unicode or text.isascii()


def test_timeline_shows_segments_messages_and_the_stop_time() -> None:
    text = render_timeline(example_journal(), "2", {CHILD: child_journal()})
    assert text.startswith("demo.t2  ")
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "interrupted by new message, 10.0 s" in lines
    assert "▓" in lines["shell python -m pytes…"]
    assert "failed" in lines["shell python -m pytes…"]
    assert "◆" in lines["steer at 4.00 s"]
    assert "stopped in 14 ms (shell 12 ms) ▲" in lines["stopped at 10.0 s"]
    assert "14 ms from the interrupt to the end of the turn, of which:" in lines
    assert "steered into step 2, after 3.45 s" in text
    assert "7,210 in (5,948 cached), 170" in text
    assert "$0.0312" in text


def test_colours_are_used_only_when_enabled() -> None:
    assert ESCAPE not in render_timeline(example_journal(), "2") + render_turn_list(example_journal())
    assert f"{ESCAPE}[32m▓" in render_timeline(example_journal(), "2", style=TerminalStyle(has_colour=True))
    assert f"{ESCAPE}[34m█" in render_turn_list(example_journal(), TerminalStyle(has_colour=True))


def test_untrusted_text_cannot_inject_control_sequences_or_line_breaks() -> None:
    malicious_text = "a\x1b[2J\x07\u202e\r\n日本語 " * 30
    records: list[AnyRecord] = [
        TurnStarted(turn="demo.t1", messages=(UserMessage("m", malicious_text),), at=START_TIME),
        Replied(
            turn="demo.t1",
            step=1,
            message=AssistantMessage(malicious_text, (Call("c", malicious_text, "{"),)),
            at=START_TIME + 1,
        ),
        CallStarted(turn="demo.t1", call="c", at=START_TIME + 1),
    ]
    text = f"{render_timeline(records)}\n{render_turn_list(records)}"
    assert not {ESCAPE, "\x07", "\u202e", "\r"} & set(text)
    assert max(display_width(line) for line in text.splitlines()) <= 80


def test_missing_turn_is_reported() -> None:
    assert render_timeline([]) == "No turn has run in this session yet."
    assert render_timeline(example_journal(), "7") == "There is no turn 7 in this session."
    assert render_turn_list([]) == "No turn has run in this session yet."


def test_turn_list_has_a_line_and_a_bar_for_each_turn() -> None:
    lines = render_turn_list(example_journal()).splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["t1", "completed"], ["t2", "interrupted"], ["t3", "running"]]
    assert lines[1].count("█") > lines[0].count("█") > 0
    assert lines[4] == "3 turns, 11.0 s, $0.0322"
