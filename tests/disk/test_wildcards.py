"""Path patterns as regular expressions."""

import re

import pytest

from hark.disk.wildcards import translate


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("a", "a", True),
        ("a", "b/a", False),
        ("*.py", "a.py", True),
        ("*.py", "b/a.py", False),
        ("**/a", "a", True),
        ("**/a", "b/c/a", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b/**/c", "a/b/b/x/c", True),
        ("a/**/x/b/**/b", "a/x/x/b/b", True),
        ("**", "a/b", True),
        ("*a*b*", "xxaxxbxx", True),
        ("*a*b", "abab", True),
        ("*ab*ab", "ab", False),
        ("?", "a", True),
        ("?", "/", False),
        ("[a-c]x", "bx", True),
        ("[!a]x", "ax", False),
        ("[!a]x", "/x", False),
        ("[]a]", "]", True),
        ("[", "[", False),
        ("[[:digit:]]", "7", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("a.b", "axb", False),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: str, is_match: bool) -> None:
    assert bool(re.fullmatch(translate(pattern), path)) == is_match


def test_a_pattern_made_to_take_long_does_not() -> None:
    assert not re.fullmatch(translate("*a" * 30 + "b"), "a" * 255)
    assert not re.fullmatch(translate("**/a/" * 30 + "b"), "a/" * 200 + "c")
    assert re.fullmatch(translate("**/a/" * 30 + "c"), "a/" * 200 + "c")
    assert re.fullmatch(translate("**/" * 30 + "c"), "a/" * 200 + "c")
