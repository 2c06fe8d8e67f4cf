"""Translating path patterns to regular expressions."""

import re

import pytest

from hark.disk.wildcards import wildcard_to_regex


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
def test_a_pattern_matches_whole_relative_paths(pattern: str, path: str, is_match: bool) -> None:
    assert bool(re.fullmatch(wildcard_to_regex(pattern), path)) == is_match


def test_a_pattern_that_provokes_backtracking_is_matched_quickly() -> None:
    assert not re.fullmatch(wildcard_to_regex("*a" * 30 + "b"), "a" * 255)
    assert not re.fullmatch(wildcard_to_regex("**/a/" * 30 + "b"), "a/" * 200 + "c")
    assert re.fullmatch(wildcard_to_regex("**/a/" * 30 + "c"), "a/" * 200 + "c")
    assert re.fullmatch(wildcard_to_regex("**/" * 30 + "c"), "a/" * 200 + "c")
