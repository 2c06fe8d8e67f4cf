"""Text of any kind is fitted to the given number of terminal columns."""

import pytest

from hark.text.columns import display_width, fit_to_columns, to_one_line, to_plain_text, truncate, wrap_to_columns

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
def test_text_is_truncated_fitted_and_wrapped_to_the_column_count(text: str, columns: int) -> None:
    assert display_width(truncate(text, columns)) <= columns
    assert display_width(fit_to_columns(text, columns)) == columns
    assert all(display_width(line) <= columns for line in wrap_to_columns(text, columns))


def test_control_characters_are_removed_or_replaced() -> None:
    assert to_one_line("a\x1b[2Jb\r\n\tc\u202ed\x00") == "a�[2Jb cd�"
    assert to_plain_text("one\x1b\ntwo\r") == "one�\ntwo "
    assert wrap_to_columns("one two three", 7) == ["one two", "three"]
