"""File names from outside, made harmless."""

import pytest

from hark.disk.safe_name import LONGEST_NAME, safe_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.png", "a.png"),
        ("über uns.pdf", "über uns.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.txt", "y.txt"),
        ("C:\\x\\..", "file"),
        ("..", "file"),
        ("a\x00b\n.txt", "ab.txt"),
        ("\u202e.bashrc\n", "bashrc"),
        ("a\u2028b.txt", "ab.txt"),
        ("", "file"),
        (None, "file"),
        ("n" * 300 + ".tar", "n" * 96 + ".tar"),
        ("n" * 300, "n" * 100),
        ("n" * 98 + " ." + "x" * 50, "n" * 98),
        ("." + "n" * 300 + "." + "e" * 20, "n" * 100),
    ],
)
def test_a_name_leads_nowhere_and_keeps_its_ending(name: str | None, safe: str) -> None:
    assert safe_name(name) == safe
    assert len(safe) <= LONGEST_NAME


def test_the_fallback_is_used_if_nothing_is_left() -> None:
    assert safe_name(" .. ", "photo-1.jpg") == "photo-1.jpg"
