"""Parsing patches and unified diffs into hunks."""

from hark.surfaces.acp.tool_calls import parse_hunks

UNIFIED = """\
--- a/src/x.py
+++ b/src/x.py
@@ -1,3 +1,3 @@
 one
-two
+three
 four
@@ -9,1 +9,2 @@
 nine
+ten
"""
BEGIN_PATCH = """\
*** Begin Patch
*** Add File: new.txt
+hello
*** Update File: old.txt
@@
-a
+b
*** Delete File: gone.txt
*** End Patch
"""


def test_unified_diff_is_parsed_into_hunks() -> None:
    first, second = parse_hunks(UNIFIED)
    assert (first.path, first.old, first.new) == ("src/x.py", "one\ntwo\nfour\n", "one\nthree\nfour\n")
    assert (second.path, second.old, second.new) == ("src/x.py", "nine\n", "nine\nten\n")


def test_begin_patch_format_is_parsed_into_hunks() -> None:
    assert [(hunk.path, hunk.old, hunk.new) for hunk in parse_hunks(BEGIN_PATCH)] == [
        ("new.txt", "", "hello\n"),
        ("old.txt", "a\n", "b\n"),
    ]


def test_text_that_is_not_a_diff_has_no_hunks() -> None:
    assert parse_hunks("+ a list\n- of things") == []
