"""The tool that applies patches."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.last_reads import LastReads
from hark.tools.files.patch import Patch, PatchArguments
from tests.tools.context import FakeContext, call_tool

HOME_FILE = str(Path("~/c").expanduser())


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


async def patch(root: Path, text: str) -> ToolOutput:
    return await call_tool(Patch(LastReads()), {"patch": text}, FakeContext(root))


async def refused(root: Path, text: str) -> str:
    before, folders = contents(root), tree(root)
    output = await patch(root, text)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert (contents(root), tree(root)) == (before, folders)
    return output.text


def tree(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def begin(text: str) -> str:
    return f"*** Begin Patch\n{text}*** End Patch\n"


async def test_a_unified_diff_changes_makes_deletes_and_moves(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    (tmp_path / "gone").write_text("x\n")
    (tmp_path / "old").write_text("1\n2\n")
    (tmp_path / "old").chmod(0o755)
    text = """Some words before it.
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
    output = await patch(tmp_path, text)
    assert output == ToolOutput("Updated a\nAdded new/b\nDeleted gone\nMoved old to moved")
    assert contents(tmp_path) == {"a": b"one\n2\nthree\n", "moved": b"1\ntwo\n", "new/b": b"b\nc\n"}
    assert os.access(tmp_path / "new/b", os.X_OK)
    assert os.access(tmp_path / "moved", os.X_OK)
    assert not os.access(tmp_path / "a", os.X_OK)


async def test_the_other_format_changes_makes_deletes_and_moves(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("class A:\n    def f(self):\n        x\n\nclass B:\n    def f(self):\n        x\n")
    (tmp_path / "gone").write_text("x\n")
    (tmp_path / "old").write_text("1\n2\n")
    text = begin("""*** Update File: a
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
    output = await patch(tmp_path, text)
    assert output == ToolOutput("Updated a\nAdded new/b\nDeleted gone\nMoved old to moved/new")
    assert contents(tmp_path) == {
        "a": b"class A:\n    def f(self):\n        x\n\nclass B:\n    def f(self):\n        y\n",
        "moved/new": b"1\ntwo\n",
        "new/b": b"b\n\nc\n",
    }


async def test_one_part_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("start\ntotal = price\nend\n")
    text = begin("""*** Update File: a
-one
+1
*** Add File: folder/c
+c
*** Update File: b
 start
-total = prices
+x
""")
    message = await refused(tmp_path, text)
    assert message == (
        "b: Hunk 1 of 1 does not fit. The nearest passage, at line 1:\n     1\tstart\n     2\ttotal = price\n"
        "Nothing was changed, in no file."
    )


async def test_a_write_that_fails_in_the_middle_is_put_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "blocked").write_text("a file\n")
    text = begin("""*** Update File: a
-one
+1
*** Add File: made/b
+b
*** Add File: blocked/c
+c
""")
    message = await refused(tmp_path, text)
    assert message == "blocked/c can't be written: File exists. Nothing was changed."


async def test_what_could_not_be_put_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")
    rename = Path.replace
    written: list[Path] = []

    def fail_after_the_first(path: Path, target: Path) -> Path:
        if written:
            raise OSError(28, "No space left on device")
        written.append(target)
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", fail_after_the_first)
    text = begin("*** Update File: a\n-one\n+1\n*** Update File: b\n-one\n+1\n")
    output = await patch(tmp_path, text)
    assert (output.is_error, output.effect) == (True, Effect.UNKNOWN)
    assert output.text == (
        "b can't be written: No space left on device. What was changed before could not be put back in: a."
    )


async def test_a_shifted_hunk_is_found_and_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    text = "--- a/a\n+++ b/a\n@@ -3,2 +3,2 @@\n line 9\n-line 10\n+line ten\n@@ -9,2 +9,2 @@\n line 15\n-line 16\n+x\n"
    output = await patch(tmp_path, text)
    assert output.text.startswith("Updated a\n[Hunk 1 of 2 (at line 3): fits at line 9, not 3]\n--- a\n+++ a\n")
    assert "Hunk 2" not in output.text  # it is as far off as the first
    assert b"line ten\n" in contents(tmp_path)["a"]


async def test_white_space_that_differs_is_told_and_the_files_own_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("if x:\n\tone()\n\ttwo()  \n")
    output = await patch(tmp_path, begin("*** Update File: a\n if x:\n-    one()\n     two()\n+\tthree()\n"))
    assert "[Hunk 1 of 1: the indentation differs]" in output.text
    assert contents(tmp_path)["a"] == b"if x:\n\ttwo()  \n\tthree()\n"


async def test_a_hunk_that_fits_twice_takes_the_first_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\ny\nx\n")
    output = await patch(tmp_path, begin("*** Update File: a\n-x\n+z\n"))
    assert "[Hunk 1 of 1: fits at lines 1, 3; the first was taken]" in output.text
    await patch(tmp_path, begin("*** Update File: a\n-x\n+end\n*** End of File\n"))
    assert contents(tmp_path)["a"] == b"z\ny\nend\n"


async def test_line_ends_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\nthree")
    await patch(tmp_path, begin("*** Update File: a\n one\n-two\n+2\n+2b\n three\n"))
    assert contents(tmp_path)["a"] == b"one\r\n2\r\n2b\r\nthree"
    await patch(tmp_path, begin("*** Update File: a\n three\n+four\n"))
    assert contents(tmp_path)["a"] == b"one\r\n2\r\n2b\r\nthree\r\nfour"
    text = "--- a/a\n+++ b/a\n@@ -4,2 +4,2 @@\n three\n-four\n\\ No newline at end of file\n+4\n"
    await patch(tmp_path, text)
    assert contents(tmp_path)["a"] == b"one\r\n2\r\n2b\r\nthree\r\n4\r\n"


async def test_wrong_counts_and_fences_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\ntwo\n")
    (tmp_path / "b").write_text("x\n")
    text = (
        "```diff\n--- a/a\n+++ b/a\n@@ -1,9 +1,1 @@\n one\n\n-two\n+2\n--- a/b\n+++ b/b\n@@ -1,7 +1,7 @@\n-x\n+y\n```\n"
    )
    await patch(tmp_path, text)
    assert contents(tmp_path) == {"a": b"one\n\n2\n", "b": b"y\n"}


async def test_a_removed_line_may_look_like_a_heading(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- old\nselect 1\n")
    text = "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n select 1\n"
    await patch(tmp_path, text)
    assert contents(tmp_path)["a.sql"] == b"++ new\nselect 1\n"
    text = "--- a/a.sql\n+++ b/a.sql\n@@ -1 +1 @@\n-++ new\n+-- old\n@@ -2 +2 @@\n-select 1\n+select 2\n"
    await patch(tmp_path, text)
    assert contents(tmp_path)["a.sql"] == b"-- old\nselect 2\n"


async def test_parts_of_one_file_build_on_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    text = begin("""*** Update File: a
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
    await patch(tmp_path, text)
    assert contents(tmp_path) == {"a": b"new\n", "b": b"c\n"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "There is no patch in the text"),
        ("hello\nworld", "There is no patch in the text"),
        (begin(""), "There is no patch in the text"),
        ("@@ -1 +1 @@\n-a\n+b\n", "no --- and +++ lines name its file before"),
        ("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\nwrong\n", "Line 5 of the patch, 'wrong'"),
        (begin("*** Update File: a\nwrong\n"), "Line 3 of the patch, 'wrong'"),
        (begin("wrong\n"), "expected *** Add File:"),
        (begin("*** Add File: n\nwrong\n"), "each line of an added file begins with +"),
        (begin("*** Delete File: a\n+x\n"), "a deleted file has no lines"),
        (begin("*** Update File: a\n"), "says nothing of what to change in a"),
        (begin("*** Add File: a\n+x\n"), "a is there already"),
        (begin("*** Update File: missing\n-x\n+y\n"), "missing does not exist"),
        (begin("*** Delete File: missing\n"), "missing does not exist"),
        (begin("*** Update File: a\n*** Move to: b\n-one\n+1\n"), "b is there already"),
        (begin("*** Update File: a\n@@ nowhere\n-one\n+1\n"), "its heading 'nowhere' is not in the file"),
        (begin("*** Update File: binary\n-x\n+y\n"), "binary is binary"),
        (begin("*** Delete File: link\n"), "link is a symbolic link"),
        (begin("*** Update File: b\n two\n+x\n@@\n one\n+y\n"), "hunks must come in the order of the file"),
        (begin("*** Update File: b\n-zero\n+one\n two\n"), "It seems to be made already, at line 1"),
        ("--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "has more lines than the patch removes"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "is a symbolic link or submodule"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies a file"),
        ("diff --git a/x b/x\nGIT binary patch\n", "is binary"),
        (begin("*** Update File: a\n-one\n+one\n"), "The patch changes nothing"),
        (begin("*** Update File: /dev/null\n-one\n+one\n"), "is a device"),
    ],
)
async def test_a_bad_patch_is_told(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\ntwo\n")
    (tmp_path / "binary").write_bytes(b"\0x\n")
    (tmp_path / "link").symlink_to("a")
    assert words in await refused(tmp_path, text)


async def test_what_it_would_change_is_foreseen() -> None:
    spec = Patch(LastReads()).spec
    text = begin("*** Update File: a\n*** Move to: /b\n-x\n+y\n*** Delete File: ~/c\n*** Add File: d\n+x\n")
    foreseen = spec.foreseen(PatchArguments(text))
    assert foreseen.is_changing
    assert foreseen.subject == "a, /b, ~/c, d"
    assert foreseen.writes == ("a", "/b", HOME_FILE, "d")
    for garbage in ("", "\0", "@@ -1 +1 @@"):
        assert spec.foreseen(PatchArguments(garbage)).is_changing


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(25))
async def test_what_git_makes_of_a_random_change_is_applied(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    before, after = tmp_path / "before", tmp_path / "after"
    random_files(before, chance)
    shutil.copytree(before, after)
    change_randomly(after, chance)
    (before / ".git").mkdir()
    words = ["git", "diff", "--no-index", "--no-color", "-M", "before", "after"]
    made = output_of(words, tmp_path)
    (before / ".git").rmdir()
    text = made.replace("a/before/", "a/").replace("b/after/", "b/").replace(" before/", " ").replace(" after/", " ")
    text = text.replace("b/before/", "b/").replace("a/after/", "a/")
    if text:
        output = await patch(before, text)
        assert not output.is_error, output.text
    assert contents(before) == contents(after)


def output_of(words: list[str], folder: Path) -> str:
    return subprocess.run(words, cwd=folder, capture_output=True, check=False).stdout.decode()


def random_files(root: Path, chance: random.Random) -> None:
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
