"""Applying hunks, with `git apply` and patch(1) as oracles on random files with repeated lines."""

import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.tool import ToolError
from hark.tools.files.nearest_match import explain_mismatch
from hark.tools.files.patching.apply_hunks import apply_hunks
from hark.tools.files.patching.parse import parse_patch

LINES = (
    "x",
    "y",
    "}",
    "",
    " ",
    "  return",
    "-- a",
    "++ b",
    "@@ -1 +1 @@",
    "\\ No newline at end of file",
    "*** Begin Patch",
    "*** End Patch",
    "diff --git a/a b/b",
    "f\x0cf",
    "u\u2028u",
    "c\rr",
    "t  ",
    "\tq",
)
FILES = 250


class GitFolder:
    """A git repository with many files: each has an old version in the index and a new version on disk."""

    def __init__(self, root: Path, versions: list[tuple[str, str]]) -> None:
        self.root = root
        self.versions = {f"f{number:03}": version for number, version in enumerate(versions)}
        self.git("init", "--quiet")
        self.write(0)
        self.git("add", ".")
        self.write(1)

    def write(self, version: int) -> None:
        for name, texts in self.versions.items():
            (self.root / name).write_bytes(texts[version].encode())

    def git(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, check=False)

    def diffs(self, context: int) -> dict[str, str]:
        """Return the diff of each file. A diff's header can't occur in another diff, because no line has its text."""
        paths = [name for name, (old, new) in self.versions.items() if old != new]
        output = self.git("diff", "--text", f"-U{context}", *paths).stdout.decode()
        starts = [output.index(f"diff --git a/{path} b/{path}\n") for path in paths]
        return {path: output[at:end] for path, at, end in zip(paths, starts, [*starts[1:], None], strict=True)}


def make_text(chance: random.Random, endings: tuple[str, ...]) -> str:
    lines = chance.sample(LINES, chance.randint(1, len(LINES)))
    ending = chance.choice(endings)
    text = ""
    for _ in range(chance.randint(0, 6)):
        block = [chance.choice(lines) for _ in range(chance.randint(0, 6))] * chance.randint(1, 3)
        text += "".join(line + (ending or chance.choice(["\n", "\r\n"])) for line in block)
    return text if chance.random() < 0.8 else text.removesuffix("\n").removesuffix("\r")


def change_text(text: str, chance: random.Random, most: int) -> str:
    lines = text.split("\n")
    for _ in range(chance.randint(1, most)):
        at = chance.randrange(len(lines) + 1)
        ending = "\r" if "\r\n" in text and chance.random() < 0.7 else ""
        lines[at : at + chance.randint(0, 2)] = [chance.choice(LINES) + ending for _ in range(chance.randint(0, 3))]
    return "\n".join(lines)


def make_folder(root: Path, seed: int, endings: tuple[str, ...]) -> tuple[GitFolder, random.Random]:
    chance = random.Random(seed)
    olds = [make_text(chance, endings) for _ in range(FILES)]
    return GitFolder(root, [(old, change_text(old, chance, 5)) for old in olds]), chance


def apply_or_none(text: str, diff: str) -> str | None:
    (patch,) = parse_patch(diff)
    try:
        return apply_hunks(text, patch.hunks).text
    except ToolError:
        return None


@pytest.mark.parametrize("context", [0, 1, 3])
def test_diffs_of_git_are_applied_where_git_applies_them(context: int, tmp_path: Path) -> None:
    folder, _ = make_folder(tmp_path, context, ("\n", "\r\n", ""))
    refused = 0
    for name, diff in folder.diffs(context).items():
        old, new = folder.versions[name]
        result = apply_or_none(old, diff)
        assert result in (new, None), diff
        refused += result is None
        assert result is not None or (context == 0 and "\r\n" in old), diff
    assert refused <= 8


@pytest.mark.parametrize("context", [0, 1, 3])
def test_diffs_land_where_git_puts_them_or_are_refused_when_the_file_has_changed(context: int, tmp_path: Path) -> None:
    folder, chance = make_folder(tmp_path, 10 + context, ("\n",))
    options = ["--unidiff-zero"] if context == 0 else []
    both = 0
    for name, diff in list(folder.diffs(context).items())[:80]:
        # git glues lines together if it finds a line without newline in the middle of a file.
        if "\n\\ No newline" in diff:
            continue
        base = change_text(folder.versions[name][0], chance, 3)
        ours = apply_or_none(base, diff)
        (tmp_path / name).write_bytes(base.encode())
        (tmp_path / "diff").write_bytes(diff.encode())
        if folder.git("apply", *options, "diff").returncode == 0 and ours is not None:
            assert ours == (tmp_path / name).read_bytes().decode(), diff
            both += 1
    assert both > 10


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize("context", [0, 1, 3])
def test_diffs_are_applied_as_patch_1_applies_them(context: int, tmp_path: Path) -> None:
    folder, _ = make_folder(tmp_path, 20 + context, ("\n",))
    diffs = folder.diffs(context)
    folder.write(0)
    (tmp_path / "diff").write_bytes("".join(diffs.values()).encode())
    command = ["patch", "--batch", "--forward", "--silent", "--fuzz=0", "--strip=1", "--input=diff"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    for name, diff in diffs.items():
        assert apply_or_none(folder.versions[name][0], diff) == (tmp_path / name).read_bytes().decode(), diff


def number_lines(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


HEADER = "--- a/a\n+++ b/a\n"


def test_a_hunk_that_adds_lines_does_not_move_the_next_hunk() -> None:
    text = number_lines(3) + "x\n" * 9
    diff = HEADER + "@@ -1,0 +2,2 @@\n+new\n+new\n@@ -8 +10 @@\n-x\n+z\n"
    (patch,) = parse_patch(diff)
    patched = apply_hunks(text, patch.hunks)
    assert patched.text.split("\n")[9] == "z"
    assert patched.notes == []


@pytest.mark.parametrize(
    "diff",
    [
        "@@ -2 +2 @@\n-x\n+z\n@@ -9 +9 @@\n-gone\n+z\n",  # the second number is wrong, so the first is doubtful
        "@@ -2 +5 @@\n-x\n+z\n",  # the two numbers contradict each other
        "@@ -3,1 +3,2 @@\n+z\n",  # the header announces an old line
        "@@ -5 +5 @@\n-x\n+z\n@@ -3 +3 @@\n-x\n+z\n",  # out of order
        "@@ -2,2 +2,2 @@\n x\n-x\n+z\n@@ -3,2 +3,2 @@\n-x\n+y\n x\n",  # overlapping
    ],
)
def test_a_diff_with_doubtful_line_numbers_is_refused_when_its_lines_repeat(diff: str) -> None:
    assert apply_or_none("x\n" * 8, HEADER + diff) is None


def test_the_line_numbers_of_a_note_refer_to_the_unpatched_file() -> None:
    text = number_lines(30)
    diff = HEADER + "@@ -2,2 +2,4 @@\n line 4\n+a\n+b\n line 5\n@@ -20 +22 @@\n-line 20\n+z\n"
    (patch,) = parse_patch(diff)
    assert apply_hunks(text, patch.hunks).notes == ["Hunk 1 of 2 (at line 2): applied at line 4 instead of 2"]


def cpu_seconds(work: Callable[[int], object], size: int) -> float:
    def run() -> float:
        start = time.process_time()
        work(size)
        return time.process_time() - start

    return min(run() for _ in range(5))


def search_repeated_lines(size: int) -> None:
    old = " x\n" * (size // 10) + "-y\n"
    assert apply_or_none("x\n" * size, f"{HEADER}@@ -1 +1 @@\n{old}") is None


def parse_trailing_blank_lines(size: int) -> None:
    parse_patch(f"{HEADER}@@ -1 +1 @@\n-x\n+y\n" + "\n" * size)


def explain_long_whitespace(size: int) -> None:
    explain_mismatch("a" + " " * size + "b\n" + "ab\n" * size, "a \t b" + "ab" * size)


@pytest.mark.parametrize("work", [search_repeated_lines, parse_trailing_blank_lines, explain_long_whitespace])
def test_hostile_text_takes_linear_time(work: Callable[[int], None]) -> None:
    size = 20_000
    assert cpu_seconds(work, 2 * size) <= 2.5 * cpu_seconds(work, size) + 0.01
