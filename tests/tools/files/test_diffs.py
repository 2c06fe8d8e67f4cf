"""Diffs between two texts."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from hark.tools.files.diffs import changed_blocks, unified_diff
from tests.waiting import at_most


def test_distant_changes_get_separate_hunks() -> None:
    old = [f"{number}" for number in range(1, 31)]
    new = [*old]
    new[4] = "five"
    new[24:25] = []
    text = unified_diff("\n".join(old) + "\n", "\n".join(new) + "\n", "a")
    assert text.split("\n") == [
        "--- a", "+++ a",
        "@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8",
        "@@ -22,7 +22,6 @@", " 22", " 23", " 24", "-25", " 26", " 27", " 28",
    ]  # fmt: skip


def test_changed_line_endings_are_visible_in_the_diff() -> None:
    assert unified_diff("a\r\n", "a\n", "f").split("\n")[3:] == ["-a␍", "+a"]
    assert unified_diff("a", "a\n", "f").split("\n")[3:] == ["-a", "\\ No newline at end of file", "+a"]
    assert unified_diff("a\n", "a\n", "f") == ""
    assert unified_diff("", "a\n", "f").split("\n")[2:] == ["@@ -0,0 +1,1 @@", "+a"]


@pytest.mark.parametrize("seed", range(30))
def test_applying_the_changed_blocks_turns_the_old_lines_into_the_new_ones(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.choice([0, 5, 50, 800])
    before = [str(chance.randrange(max(1, size))) for _ in range(size)]
    after = [*before]
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(after) + 1)
        after[at : at + chance.randrange(5)] = [f"new {chance.randrange(9)}"] * chance.randrange(5)
    rebuilt = [*before]
    for old_from, old_to, new_from, new_to in reversed(list(changed_blocks(before, after))):
        rebuilt[old_from:old_to] = after[new_from:new_to]
    assert rebuilt == after


@pytest.mark.parametrize("seed", range(10))
def test_git_apply_accepts_the_diff(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    old = [f"{chance.randrange(9)}" for _ in range(40)]
    new = [*old]
    for _ in range(3):
        new[chance.randrange(len(new))] = f"new {chance.randrange(9)}"
    (tmp_path / "f").write_text("\n".join(old) + "\n")
    diff = unified_diff("\n".join(old) + "\n", "\n".join(new) + "\n", "f")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-p0"], cwd=tmp_path, input=f"{diff}\n".encode(), check=bool(diff))
    assert (tmp_path / "f").read_text() == "\n".join(new) + "\n"


def test_diff_of_reversed_lines_is_fast_and_short() -> None:
    old = "\n".join(str(number) for number in range(30_000))
    new = "\n".join(str(number) for number in reversed(range(30_000)))
    started = time.monotonic()
    text = unified_diff(old, new, "a")
    assert time.monotonic() - started < at_most(5)
    assert len(text.split("\n")) <= 122
    assert text.endswith("added]")


@pytest.mark.parametrize("seed", range(60))
def test_git_apply_accepts_the_diff_between_any_two_texts(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    texts = ["".join(chance.choice(["a", "b", "\n", "x\n"]) for _ in range(chance.randrange(60))) for _ in range(2)]
    if chance.random() < 0.5:
        texts = [text + "\n" for text in texts]
    start, end = "s\n" * chance.randrange(9), "e\n" * chance.randrange(9)
    old, new = (start + text + end for text in texts)
    (tmp_path / "f").write_text(old)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    if old != new and old and new:
        diff = unified_diff(old, new, "f").encode() + b"\n"
        subprocess.run(["git", "apply", "-p0"], cwd=tmp_path, input=diff, check=True)
        assert (tmp_path / "f").read_text() == new
