"""The first words fit a small terminal, and each says what to do."""

import pytest

from hark.cli.terminal import welcome


@pytest.mark.parametrize("is_embedded", [True, False])
def test_three_lines_say_what_to_do_next(is_embedded: bool) -> None:
    lines = welcome("main", is_embedded)
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert "\n".join(lines).isascii()
    assert ("hark setup" in lines[0]) is is_embedded
    assert ("main" in lines[0]) is not is_embedded
