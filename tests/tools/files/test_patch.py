"""The `patch` tool."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.last_reads import LastReads
from hark.tools.files.patch import PatchArguments, PatchTool
from tests.tools.fake_context import FakeContext, call_tool

HOME_FILE = str(Path("~/c").expanduser())


def read_files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


async def apply_patch(root: Path, text: str) -> ToolOutput:
    return await call_tool(PatchTool(LastReads()), {"patch": text}, FakeContext(root))


async def expect_error(root: Path, text: str) -> str:
    before, folders = read_files(root), list_paths(root)
    output = await apply_patch(root, text)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert (read_files(root), list_paths(root)) == (before, folders)
    return output.text


def list_paths(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def wrap_patch(text: str) -> str:
    return f"*** Begin Patch\n{text}*** End Patch\n"


async def test_a_unified_diff_can_change_create_delete_and_move_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    (tmp_path / "gone").write_text("x\n")
    (tmp_path / "old").write_text("1\n2\n")
    (tmp_path / "old").chmod(0o755)
    text = """Some text before the diff.
--- a/a
+++ b/a
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/new/b b/new/b
new file mode 100755
index 0000000..1111111
--- /dev/null
+++ b/new/b
@@ -0,0 +1,2 @@
+b
+c
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/old b/moved
similarity index 50%
rename from old
rename to moved
--- a/old
+++ b/moved
@@ -1,2 +1,2 @@
 1
-2
+two
-- {EMPTY}
2.39.0
""".replace("{EMPTY}", "")
    output = await apply_patch(tmp_path, text)
    assert output == ToolOutput("Updated a\nAdded new/b\nDeleted gone\nMoved old to moved")
    assert read_files(tmp_path) == {"a": b"one\n2\nthree\n", "moved": b"1\ntwo\n", "new/b": b"b\nc\n"}
    assert os.access(tmp_path / "new/b", os.X_OK)
    assert os.access(tmp_path / "moved", os.X_OK)
    assert not os.access(tmp_path / "a", os.X_OK)


async def test_the_begin_patch_format_can_change_create_delete_and_move_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("class A:\n    def f(self):\n        x\n\nclass B:\n    def f(self):\n        x\n")
    (tmp_path / "gone").write_text("x\n")
    (tmp_path / "old").write_text("1\n2\n")
    text = wrap_patch("""*** Update File: a
@@ class B:
@@     def f(self):
-        x
+        y
*** Add File: new/b
+b

+c
*** Delete File: gone

*** Update File: old
*** Move to: moved/new
 1
-2
+two
""")
    output = await apply_patch(tmp_path, text)
    assert output == ToolOutput("Updated a\nAdded new/b\nDeleted gone\nMoved old to moved/new")
    assert read_files(tmp_path) == {
        "a": b"class A:\n    def f(self):\n        x\n\nclass B:\n    def f(self):\n        y\n",
        "moved/new": b"1\ntwo\n",
        "new/b": b"b\n\nc\n",
    }


async def test_no_file_is_changed_if_one_part_of_the_patch_does_not_apply(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("start\ntotal = price\nend\n")
    text = wrap_patch("""*** Update File: a
-one
+1
*** Add File: folder/c
+c
*** Update File: b
 start
-total = prices
+x
""")
    message = await expect_error(tmp_path, text)
    assert message == (
        "b: Hunk 1 of 1 does not apply. The most similar passage, at line 1:\n     1\tstart\n     2\ttotal = price\n"
        "No file was changed."
    )


async def test_earlier_changes_are_undone_if_a_later_write_fails(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "blocked").write_text("a file\n")
    text = wrap_patch("""*** Update File: a
-one
+1
*** Add File: made/b
+b
*** Add File: blocked/c
+c
""")
    message = await expect_error(tmp_path, text)
    assert message == "blocked/c can't be written: File exists. Nothing was changed."


async def test_error_names_files_that_could_not_be_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")
    rename = Path.replace
    written: list[Path] = []

    def fail_after_first_rename(path: Path, target: Path) -> Path:
        if written:
            raise OSError(28, "No space left on device")
        written.append(target)
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", fail_after_first_rename)
    text = wrap_patch("*** Update File: a\n-one\n+1\n*** Update File: b\n-one\n+1\n")
    output = await apply_patch(tmp_path, text)
    assert (output.is_error, output.effect) == (True, Effect.UNKNOWN)
    assert output.text == ("b can't be written: No space left on device. Earlier changes could not be undone in: a.")


async def test_a_hunk_with_a_wrong_line_number_is_applied_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    text = "--- a/a\n+++ b/a\n@@ -3,2 +3,2 @@\n line 9\n-line 10\n+line ten\n@@ -9,2 +9,2 @@\n line 15\n-line 16\n+x\n"
    output = await apply_patch(tmp_path, text)
    assert output.text.startswith(
        "Updated a\n[Hunk 1 of 2 (at line 3): applied at line 9 instead of 3]\n--- a\n+++ a\n"
    )
    assert "Hunk 2" not in output.text  # its offset is the same as that of the first
    assert b"line ten\n" in read_files(tmp_path)["a"]


async def test_different_trailing_whitespace_is_noted_and_the_files_whitespace_is_preserved(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("if x:\n\tone()\t\n\ttwo()  \n")
    output = await apply_patch(tmp_path, wrap_patch("*** Update File: a\n if x:\n-\tone()\n \ttwo()\n+\tthree()\n"))
    assert "[Hunk 1 of 1: spaces or tabs at line ends differ]" in output.text
    assert read_files(tmp_path)["a"] == b"if x:\n\ttwo()  \n\tthree()\n"


async def test_a_hunk_with_different_indentation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("if x:\n\tone()\n")
    message = await expect_error(tmp_path, wrap_patch("*** Update File: a\n if x:\n-    one()\n+    two()\n"))
    assert "At line 2 only whitespace differs (tabs versus spaces)." in message


async def test_an_ambiguous_hunk_is_refused_and_its_places_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\nx\n")
    message = await expect_error(tmp_path, wrap_patch("*** Update File: a\n-x\n+z\n"))
    assert "Hunk 1 of 1 is ambiguous: its lines occur at lines 1, 3. Include more" in message
    await apply_patch(tmp_path, wrap_patch("*** Update File: a\n-x\n+end\n*** End of File\n"))
    assert read_files(tmp_path)["a"] == b"x\ny\nend\n"


async def test_a_patch_preserves_line_endings(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\nthree")
    await apply_patch(tmp_path, wrap_patch("*** Update File: a\n one\n-two\n+2\n+2b\n three\n"))
    assert read_files(tmp_path)["a"] == b"one\r\n2\r\n2b\r\nthree"
    await apply_patch(tmp_path, wrap_patch("*** Update File: a\n three\n+four\n"))
    assert read_files(tmp_path)["a"] == b"one\r\n2\r\n2b\r\nthree\r\nfour"
    text = "--- a/a\n+++ b/a\n@@ -4,2 +4,2 @@\n three\n-four\n\\ No newline at end of file\n+4\n"
    await apply_patch(tmp_path, text)
    assert read_files(tmp_path)["a"] == b"one\r\n2\r\n2b\r\nthree\r\n4\r\n"


async def test_wrong_line_counts_and_code_fences_are_tolerated(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\ntwo\n")
    (tmp_path / "b").write_text("x\n")
    text = (
        "```diff\n--- a/a\n+++ b/a\n@@ -1,9 +1,1 @@\n one\n\n-two\n+2\n--- a/b\n+++ b/b\n@@ -1,7 +1,7 @@\n-x\n+y\n```\n"
    )
    await apply_patch(tmp_path, text)
    assert read_files(tmp_path) == {"a": b"one\n\n2\n", "b": b"y\n"}


async def test_a_changed_line_that_looks_like_a_file_header_is_parsed_as_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- old\nselect 1\n")
    text = "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n select 1\n"
    await apply_patch(tmp_path, text)
    assert read_files(tmp_path)["a.sql"] == b"++ new\nselect 1\n"
    text = "--- a/a.sql\n+++ b/a.sql\n@@ -1 +1 @@\n-++ new\n+-- old\n@@ -2 +2 @@\n-select 1\n+select 2\n"
    await apply_patch(tmp_path, text)
    assert read_files(tmp_path)["a.sql"] == b"-- old\nselect 2\n"


async def test_several_parts_for_one_file_build_on_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    text = wrap_patch("""*** Update File: a
-one
+two
*** Update File: a
-two
+three
*** Add File: b
+b
*** Update File: b
-b
+c
*** Delete File: a
*** Add File: a
+new
""")
    await apply_patch(tmp_path, text)
    assert read_files(tmp_path) == {"a": b"new\n", "b": b"c\n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The text contains no patch"),
        ("hello\nworld", "The text contains no patch"),
        (wrap_patch(""), "The text contains no patch"),
        ("@@ -1 +1 @@\n-a\n+b\n", "no --- and +++ lines before it name its file"),
        ("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\nwrong\n", "Line 5 of the patch, 'wrong'"),
        (wrap_patch("*** Update File: a\nwrong\n"), "Line 3 of the patch, 'wrong'"),
        (wrap_patch("wrong\n"), "expected *** Add File:"),
        (wrap_patch("*** Add File: n\nwrong\n"), "each line of an added file must begin with +"),
        (wrap_patch("*** Delete File: a\n+x\n"), "can't contain lines"),
        (wrap_patch("*** Update File: a\n"), "contains no change for a"),
        (wrap_patch("*** Add File: a\n+x\n"), "a already exists"),
        (wrap_patch("*** Update File: missing\n-x\n+y\n"), "missing does not exist"),
        (wrap_patch("*** Delete File: missing\n"), "missing does not exist"),
        (wrap_patch("*** Update File: a\n*** Move to: b\n-one\n+1\n"), "b already exists"),
        (wrap_patch("*** Update File: a\n@@ nowhere\n-one\n+1\n"), "its heading 'nowhere' was not found"),
        (wrap_patch("*** Update File: binary\n-x\n+y\n"), "binary is a binary file"),
        (wrap_patch("*** Delete File: link\n"), "link is a symbolic link"),
        (wrap_patch("*** Update File: b\n two\n+x\n@@\n one\n+y\n"), "Hunks must be in the order of the file"),
        (wrap_patch("*** Update File: b\n-zero\n+one\n two\n"), "It seems to have been applied already, at line 1"),
        ("--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "has more lines than the patch removes"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "is a symbolic link or submodule"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies a file"),
        ("diff --git a/x b/x\nGIT binary patch\n", "is binary"),
        (wrap_patch("*** Update File: a\n-one\n+one\n"), "The patch changes nothing"),
        (wrap_patch("*** Update File: b\n+x\n"), "adds lines without context, and it has no line numbers"),
        ("*** Begin Patch\n*** Update File: a\n-one\n+1\n", "The patch has no line *** End Patch"),
        (wrap_patch("*** Update File: a\n-one\n+1\n") + "*** Delete File: b\n", "outside of *** Begin Patch"),
        (wrap_patch("*** Update File: a\n-one\n+1\n") + "+more\n", "outside of *** Begin Patch"),
        ("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n" + wrap_patch("*** Delete File: b\n"), "follows a unified diff"),
        ("--- a/b\n+++ b/b\n@@ -7,0 +8 @@\n+x\n", "its line numbers don't fit the file"),
        (
            "--- a/b\n+++ b/b\n@@ -2 +2 @@\n-two\n\\ No newline at end of file\n+x\n",
            "the file has a newline at its end",
        ),
        (wrap_patch("*** Update File: a\n-one\n+\ud800\n"), "unpaired surrogate"),
        (wrap_patch("*** Update File: /dev/null\n-one\n+one\n"), "is a device"),
    ],
)
async def test_a_bad_patch_is_rejected_with_an_explanation(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\ntwo\n")
    (tmp_path / "binary").write_bytes(b"\0x\n")
    (tmp_path / "link").symlink_to("a")
    assert message in await expect_error(tmp_path, text)


async def test_the_files_that_a_patch_would_change_are_predicted() -> None:
    spec = PatchTool(LastReads()).spec
    text = wrap_patch("*** Update File: a\n*** Move to: /b\n-x\n+y\n*** Delete File: ~/c\n*** Add File: d\n+x\n")
    foreseen = spec.predict_effects(PatchArguments(text))
    assert foreseen.is_changing
    assert foreseen.subject == "a, /b, ~/c, d"
    assert foreseen.writes == ("a", "/b", HOME_FILE, "d")
    for garbage in ("", "\0", "@@ -1 +1 @@"):
        assert spec.predict_effects(PatchArguments(garbage)).is_changing


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(25))
async def test_random_diffs_made_by_git_are_applied_correctly(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    before, after = tmp_path / "before", tmp_path / "after"
    create_random_files(before, chance)
    shutil.copytree(before, after)
    change_randomly(after, chance)
    (before / ".git").mkdir()
    command = ["git", "diff", "--no-index", "--no-color", "-M", "before", "after"]
    diff = run_command(command, tmp_path)
    (before / ".git").rmdir()
    text = diff.replace("a/before/", "a/").replace("b/after/", "b/").replace(" before/", " ").replace(" after/", " ")
    text = text.replace("b/before/", "b/").replace("a/after/", "a/")
    if text:
        output = await apply_patch(before, text)
        assert not output.is_error, output.text
    assert read_files(before) == read_files(after)


def run_command(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout.decode()


def create_random_files(root: Path, chance: random.Random) -> None:
    for name in ("a.txt", "sub/b.txt", "sub/c d.txt", "e"):
        lines = [f"{chance.choice(['x', 'y', ''])}{chance.randint(0, 9)}" for _ in range(chance.randint(1, 60))]
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("\n".join(lines) + chance.choice(["\n", ""]))


def change_randomly(root: Path, chance: random.Random) -> None:
    for path in [path for path in sorted(root.rglob("*")) if path.is_file()]:
        match chance.choice(["edit", "edit", "edit", "delete", "rename", "none"]):
            case "edit":
                lines = path.read_text().split("\n")
                for _ in range(chance.randint(1, 4)):
                    at = chance.randrange(len(lines) + 1)
                    lines[at : at + chance.randint(0, 3)] = ["new"] * chance.randint(0, 3)
                path.write_text("\n".join(lines))
            case "delete":
                path.unlink()
            case "rename":
                path.rename(path.with_name(f"moved {path.name}"))
            case _:
                continue
    (root / "added").write_text("1\n2")


async def test_all_blocks_of_a_patch_are_applied_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")
    first = wrap_patch("*** Update File: a\n-one\n+1\n")
    await expect_error(tmp_path, first + wrap_patch("*** Update File: b\n-two\n+2\n"))
    await expect_error(tmp_path, first + wrap_patch("+stray\n"))
    second = wrap_patch("*** Update File: b\n-one\n+2\n")
    output = await apply_patch(tmp_path, f"{first}\n{second}```\n")
    assert output == ToolOutput("Updated a\nUpdated b")
    assert read_files(tmp_path) == {"a": b"1\n", "b": b"2\n"}


async def test_a_heading_matches_only_complete_lines(tmp_path: Path) -> None:
    code = "def test_one():\n    x = 1\n\n\ndef test():\n    x = 1\n\n\nclass Foo(Base):\n    y = 1\n"
    (tmp_path / "a").write_text(code)
    await apply_patch(tmp_path, wrap_patch("*** Update File: a\n@@ def test():\n-    x = 1\n+    x = 2\n"))
    assert (tmp_path / "a").read_text() == code.replace("def test():\n    x = 1", "def test():\n    x = 2")
    message = await expect_error(tmp_path, wrap_patch("*** Update File: a\n@@ def test\n-    x = 1\n+    x = 3\n"))
    assert "its heading 'def test' was not found as a complete line before it" in message
    message = await expect_error(tmp_path, wrap_patch("*** Update File: a\n@@ class Foo\n-    y = 1\n+    y = 3\n"))
    assert "At line 9 only whitespace differs (your line ends, but the file's line continues)." in message
    assert "In the file: class·Foo(Base):" in message


async def test_a_heading_selects_its_indented_block(tmp_path: Path) -> None:
    code = "class A:\n    def f(self):\n        x\n\nclass B:\n    def f(self):\n        x\n"
    (tmp_path / "a").write_text(code)
    message = await expect_error(tmp_path, wrap_patch("*** Update File: a\n@@ def f(self):\n-        x\n+        y\n"))
    assert "its heading 'def f(self):' occurs at lines 2, 6" in message
    await apply_patch(tmp_path, wrap_patch("*** Update File: a\n@@ class A:\n-        x\n+        y\n"))
    assert (tmp_path / "a").read_text() == code.replace("x", "y", 1)


async def test_carriage_returns_of_a_diff_are_used_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\nthree\r\n")
    header = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n"
    await apply_patch(tmp_path, f"{header}-one\r\n+one\n two\n-three\r\n+3\r\n")
    assert read_files(tmp_path)["a"] == b"one\ntwo\n3\r\n"
    text = f"{header} one\n-two\n+2\n 3\n".replace("\n", "\r\n")  # the whole patch was written with CRLF
    await apply_patch(tmp_path, text)
    assert read_files(tmp_path)["a"] == b"one\n2\n3\r\n"
    await apply_patch(tmp_path, "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\r\n+b\n")
    assert read_files(tmp_path)["new"] == b"a\r\nb\n"


async def test_lines_that_look_like_patch_markers_are_ordinary_lines_of_a_diff(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("*** Begin Patch\n*** End Patch\n")
    await apply_patch(tmp_path, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n *** Begin Patch\n-*** End Patch\n+x\n")
    assert read_files(tmp_path)["a"] == b"*** Begin Patch\nx\n"
    await apply_patch(tmp_path, wrap_patch("*** Update File: a\n *** Begin Patch\n-x\n+*** End Patch\n"))
    assert read_files(tmp_path)["a"] == b"*** Begin Patch\n*** End Patch\n"


async def test_patching_through_a_link_changes_the_target_and_keeps_all_links(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x\n")
    (tmp_path / "hard").hardlink_to(tmp_path / "real")
    (tmp_path / "soft").symlink_to("real")
    await apply_patch(tmp_path, wrap_patch("*** Update File: soft\n-x\n+y\n"))
    assert read_files(tmp_path) == {"hard": b"y\n", "real": b"y\n", "soft": b"y\n"}
    assert (tmp_path / "soft").is_symlink()
    assert (tmp_path / "hard").samefile(tmp_path / "real")


async def test_a_later_part_of_a_patch_keeps_the_mode_that_an_earlier_part_sets(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    text = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
    await apply_patch(tmp_path, f"{text}--- a/a\n+++ b/a\n@@ -1 +1 @@\n-two\n+three\n")
    assert read_files(tmp_path)["a"] == b"three\n"
    assert os.access(tmp_path / "a", os.X_OK)


async def test_file_names_that_git_quotes_are_unquoted(tmp_path: Path) -> None:
    (tmp_path / 'gr\u00fcn\t"\\').write_text("one\n")
    name = r"gr\303\274n\t\"\\"
    await apply_patch(tmp_path, f'--- "a/{name}"\n+++ "b/{name}"\n@@ -1 +1 @@\n-one\n+two\n')
    assert list(read_files(tmp_path).values()) == [b"two\n"]
    message = await expect_error(tmp_path, r'--- "a/\303"' + "\n" + r'+++ "b/\303"' + "\n@@ -1 +1 @@\n-one\n+two\n")
    assert "a file name with an invalid escape sequence" in message


async def test_a_moved_file_keeps_its_mode_through_a_chain_of_moves(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("secret\n")
    (tmp_path / "a").chmod(0o640)
    moves = "*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: sub/c\n"
    await apply_patch(tmp_path, wrap_patch(moves))
    assert read_files(tmp_path) == {"sub/c": b"secret\n"}
    assert (tmp_path / "sub" / "c").stat().st_mode & 0o7777 == 0o640
