"""A program's output is reduced to the text that a terminal would show."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hark.text.terminal_emulator import MAX_COLUMNS, ROWS, TerminalEmulator, resolve_terminal_text
from tests.linear_time import assert_linear

UP, ERASE_LINE = "\x1b[1A", "\x1b[2K"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        pytest.param("a\nb\n", "a\nb\n", id="plain lines"),
        pytest.param("one\r\ntwo\r\n", "one\ntwo\n", id="CRLF"),
        pytest.param(" 10%\r 50%\r100%\ndone\n", "100%\ndone\n", id="carriage return"),
        pytest.param("long text\rab\n", "abng text\n", id="shorter text overwrites a part"),
        pytest.param("working\r       \rdone\n", "done\n", id="blanks erase"),
        pytest.param("working\r\x1b[Kok\n", "ok\n", id="erase to the end of the line"),
        pytest.param(f"working{ERASE_LINE}\rok\n", "ok\n", id="erase the line"),
        pytest.param("abcd\x1b[2D\x1b[1K\n", "   d\n", id="erase to the start of the line"),
        pytest.param("abcd\r\x1b[2P\n", "cd\n", id="delete characters"),
        pytest.param("|\b/\b-\b\\\bdone\n", "done\n", id="spinner with backspaces"),
        pytest.param("N\bNA\bAM\bME\bE\n", "NAME\n", id="bold text of man"),
        pytest.param("\x1b[1;31merror\x1b[0m: \x1b[38;2;1;2;3mx\x1b(B\x1b[m\n", "error: x\n", id="colours"),
        pytest.param("a\nb\n\x1b[2A\x1b[2KA\n\x1b[2KB\n", "A\nB\n", id="bars of several lines"),
        pytest.param("a\nb\n\x1b[2F\x1b[JA\n", "A\n", id="erase below the cursor"),
        pytest.param("a\nb\n\x1b[HX\x1b[3;1HY\n", "X\nb\nY\n", id="absolute position"),
        pytest.param("old\nold\n\x1b[H\x1b[2J\x1b[3Jnew\n", "new\n", id="clear"),
        pytest.param("old\nold\n\x1b[2J\x1b[Hnew", "new", id="erase the screen, then move to its start"),
        pytest.param("old\n\x1bcnew\n", "new\n", id="reset"),
        pytest.param("a\x1b7bc\x1b8X\x1b[sY\x1b[uZ\n", "aXZ\n", id="saved cursor"),
        pytest.param("a\n\x1bMb\n", "b\n", id="reverse line feed"),
        pytest.param("\x1b]0;title\x07text\x1b]2;more\x1b\\\n", "text\n", id="titles"),
        pytest.param("\x1b]8;;https://x.org\x1b\\link\x1b]8;;\x1b\\\n", "link\n", id="links"),
        pytest.param("\x1bP1;2q#0~~@@\x1b\\image\n", "image\n", id="device control strings"),
        pytest.param("\x1b]0;never ends\nnext line\n", "\nnext line\n", id="a title without an end"),
        pytest.param("$ vi\n\x1b[?1049h\x1b[Hscreen\x1b[?1049lafter\n", "$ vi\nafter\n", id="alternate screen"),
        pytest.param("$ top\n\x1b[?1049h\x1b[Hload", "$ top\nload", id="killed in the alternate screen"),
        pytest.param("a\tb\n", "a\tb\n", id="tabs are preserved"),
        pytest.param("a\tb\rxyz\n", "xyz     b\n", id="a tab that is overwritten is blank"),
        pytest.param("日本語\rab\n", "ab本語\n", id="wide characters have two columns"),
        pytest.param("日本語\ra\n", "a 本語\n", id="half of a wide character becomes blank"),
        pytest.param("e\u0301e\rx\n", "xe\n", id="combining characters have no column"),
        pytest.param("trailing  \n", "trailing  \n", id="trailing blanks are preserved"),
        pytest.param("a\x07\x0e\x0f\x7f\x85b\n", "ab\n", id="other control characters"),
        pytest.param("\x1b[999C\x1b[5Dx\n", " " * 194 + "x\n", id="movement is limited"),
        pytest.param("\x1b[99999999999999999999Ax\x1b[;Hy\x1b[?25l\n", "y\n", id="unusual parameters"),
        pytest.param("a\x9b31mb\n", "ab\n", id="8-bit control sequence"),
    ],
)
def test_output_becomes_the_text_that_a_terminal_shows(output: str, shown: str) -> None:
    assert resolve_terminal_text(output) == shown


def test_an_error_between_progress_frames_is_preserved() -> None:
    frames = "".join(f"\r{number / 18:5.1f}% {'#' * (number // 30)}" for number in range(1_800))
    assert len(resolve_terminal_text(f"{frames}\nERROR: disk full\n{frames}\n")) < 300
    assert "\nERROR: disk full\n" in resolve_terminal_text(f"{frames}\nERROR: disk full\n{frames}\n")
    bars = "".join(f"{UP * 2}{ERASE_LINE}layer 1: {number}\n{ERASE_LINE}layer 2: {number}\n" for number in range(1_800))
    assert resolve_terminal_text(f"ERROR: x\n\n\n{bars}") == "ERROR: x\nlayer 1: 1799\nlayer 2: 1799\n"


def test_only_the_last_rows_can_change() -> None:
    screen = TerminalEmulator()
    lines = "".join(f"{number}\n" for number in range(100))
    assert screen.feed(lines) == "".join(f"{number}\n" for number in range(100 - ROWS + 1))
    assert screen.feed(f"\x1b[{ROWS * 2}Atop") == ""
    assert screen.flush().startswith("top\n")
    assert screen.flush() == ""


def test_a_line_too_long_for_a_progress_bar_is_final() -> None:
    text = "x" * 3 * MAX_COLUMNS
    screen = TerminalEmulator()
    assert screen.feed("first\n" + text + "rest") == "first\n" + text
    assert screen.feed("\rend") + screen.flush() == "endt"


SEQUENCE_PARTS = ["\x1b", "[", "]", "2", ";", "K", "A", "B", "J", "H", "m", "?1049h", "?1049l", "\x07", "\\", "P", "7"]
TEXT_PARTS = ["8", "c", "\r", "\n", "\b", "\t", "é", "e\u0301", "日", "text", "\x9b", "\x9c", "\n" * 60, "x" * 600]
PIECES = st.sampled_from([*SEQUENCE_PARTS, *TEXT_PARTS])
OUTPUTS = st.lists(PIECES, max_size=40).map("".join)


@settings(derandomize=True, deadline=None, max_examples=300, database=None)
@given(OUTPUTS, st.lists(st.integers(0, 3_000), max_size=4))
def test_the_result_does_not_depend_on_where_reads_split_the_output(output: str, cuts: list[int]) -> None:
    screen = TerminalEmulator()
    positions = [0, *sorted(min(cut, len(output)) for cut in cuts), len(output)]
    pieces = [screen.feed(output[a:b]) for a, b in pairwise(positions)]
    assert "".join(pieces) + screen.flush() == resolve_terminal_text(output)


@settings(derandomize=True, deadline=None, max_examples=200, database=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn"], include_characters="\n\t")))
def test_text_without_control_characters_is_unchanged(text: str) -> None:
    assert resolve_terminal_text(text) == text


HOSTILE = ["\x1b[199Cx\n", "\x1b[1A\x1b[2Kb\n", "\x1b[99B\x1b[2J"]


def _repeat(piece: str) -> Callable[[int], str]:
    return lambda size: piece * (size // len(piece))


@pytest.mark.parametrize(
    "piece",
    [*HOSTILE, "line\n", "x", "\ra", "a\b", "\x1b", "\x1b]", "日", "\u0301", "\x1b[1", "\x1b[P", "\t\r"],
)
def test_hostile_output_takes_linear_time_and_bounded_memory(piece: str) -> None:
    def run(text: str) -> None:
        screen = TerminalEmulator()
        for start in range(0, len(text), 1_000):
            screen.feed(text[start : start + 1_000])
        assert len(screen.text) <= ROWS * (MAX_COLUMNS + 1)

    assert_linear(_repeat(piece), run, 10_000)
