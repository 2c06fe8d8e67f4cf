"""Text that has to fit a terminal's columns does, whatever it is made of."""

import pytest

from hark.text.columns import cut, fit, one_line, plain_text, width, wrap

TEXTS = [
    "",
    "plain",
    "a much longer text than there is room for",
    "日本語のテキスト",
    "e\u0301te\u0301",
    "a\x1b[31mb\x07c",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("columns", [1, 2, 7, 30])
def test_a_cut_text_fits_and_a_fitted_one_fills(text: str, columns: int) -> None:
    assert width(cut(text, columns)) <= columns
    assert width(fit(text, columns)) == columns
    assert all(width(line) <= columns for line in wrap(text, columns))


def test_control_characters_do_not_come_through() -> None:
    assert one_line("a\x1b[2Jb\r\n\tc\u202ed\x00") == "a�[2Jb cd�"
    assert plain_text("one\x1b\ntwo\r") == "one�\ntwo "
    assert wrap("one two three", 7) == ["one two", "three"]
