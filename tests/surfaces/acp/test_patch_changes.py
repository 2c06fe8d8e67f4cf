"""What a patch or a diff says, piece by piece."""

from hark.surfaces.acp.tool_calls import read_hunks

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
BEGIN = """\
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


def test_a_unified_diff_is_read_hunk_by_hunk() -> None:
    first, second = read_hunks(UNIFIED)
    assert (first.path, first.old, first.new) == ("src/x.py", "one\ntwo\nfour\n", "one\nthree\nfour\n")
    assert (second.path, second.old, second.new) == ("src/x.py", "nine\n", "nine\nten\n")


def test_a_begin_patch_is_read_file_by_file() -> None:
    assert [(hunk.path, hunk.old, hunk.new) for hunk in read_hunks(BEGIN)] == [
        ("new.txt", "", "hello\n"),
        ("old.txt", "a\n", "b\n"),
    ]


def test_what_is_no_diff_has_no_hunks() -> None:
    assert read_hunks("+ a list\n- of things") == []
