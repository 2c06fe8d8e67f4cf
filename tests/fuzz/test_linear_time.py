"""Each parser and renderer of untrusted text takes time in proportion to the text."""

import pytest

from tests.fuzz.targets import TARGETS
from tests.linear_time import assert_linear

# The targets, and the pieces whose repetition is most likely to slow them down. Commands, page scripts, chat markup and
# model replies have separate tests.
HOSTILE_PIECES: dict[str, tuple[str, ...]] = {
    "ignore rules": ("*a", "[a", "**/a/", "a\n"),
    "globs": ("[", "{a,"),
    "patch": ("*** Update File: a\n", "@@\n", "-a\n", "--- a\n+++ b\n", "@@ -1 +1 @@\n"),
    "diff": ("a\n", "a\nb\n"),
    "mismatch": ("a\n", "a ", " "),
    "front matter": ("[", "{", "- ", "a: b\n", "'"),
    "document": ("---\n",),
    "page": ("<", "<a ", "<div>", "<table><tr><td>", "<a href='", "<!--", "&#", "<ul><li>", "<pre>"),
    "page bytes": ("<meta ", "charset="),
    "invisible characters": ("\x00",),
    "address": ("a.", "%"),
    "note": (" ", "- "),
    "cron": ("*/", "1,", "1-"),
    "time phrase": ("every ", "mon, ", " at ", " "),
    "settings": ("# a\n", "[[routes]]\n"),
    "template": ("{", "{a}"),
    "secrets": ("sk-", "eyJ-", "a.", "password: ", "password:", "-----BEGIN ", "a://b:"),
    "redaction": ("token=a&",),
    "terminal text": ("\x1b[", "\x1b]", "a\r", "\x1b[1"),
    "terminal input": ("\r",),
    "early input": ("\x1b[", "\x1b[200~", "\r"),
    "columns": ("a ", "😀"),
    "call title": ("[", '{"a":'),
    "terminal reply": ("a\n", "*", "> ", "- ", "`", "|a|\n|-|\n", "[", "```\n"),
    "images of a message": ("'", "\\ ", ".png ", "@"),
    "hunks for editors": ("@@ -1 +1 @@\n", "-a\n"),
    "fence for editors": ("`",),
    "search": ("a ", "é"),
    "spoken sentences": (
        "*",
        "_",
        "```\n",
        "[",
        "![a](",
        "[a](()",
        "[a]([b](c)",
        "a. ",
        "<a",
        "|",
        "~~a",
        "https://a)",
    ),
}


@pytest.mark.parametrize(
    ("target", "piece"), [(target, piece) for target, pieces in HOSTILE_PIECES.items() for piece in pieces]
)
def test_time_is_proportional_to_the_length_of_hostile_text(target: str, piece: str) -> None:
    assert_linear(lambda size: f"x{piece * (size // len(piece))}x".encode(), TARGETS[target], 2_000)
