"""The welcome text fits a small terminal, and each line says how to continue."""

import pytest

from hark.cli.terminal import welcome_lines


@pytest.mark.parametrize("is_embedded", [True, False])
def test_the_welcome_text_has_three_lines_of_at_most_80_columns(is_embedded: bool) -> None:
    lines = welcome_lines("main", is_embedded)
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert "\n".join(lines).isascii()
    assert ("hark setup" in lines[0]) is is_embedded
    assert ("main" in lines[0]) is not is_embedded
