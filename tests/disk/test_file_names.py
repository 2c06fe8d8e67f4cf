"""Untrusted file names are made safe to use."""

import pytest

from hark.disk.file_names import MAX_NAME_CHARACTERS, sanitize_file_name


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
def test_folders_are_removed_from_a_file_name_and_its_extension_is_kept(name: str | None, safe: str) -> None:
    assert sanitize_file_name(name) == safe
    assert len(safe) <= MAX_NAME_CHARACTERS


def test_the_fallback_name_is_used_if_nothing_remains_of_the_file_name() -> None:
    assert sanitize_file_name(" .. ", "photo-1.jpg") == "photo-1.jpg"
