"""What .gitignore leaves out: the same as git does."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hark.tools.files.gitignore import ignores_of, parse_rules
from hark.tools.files.walk import TreeWalk

NAMES = ["a", "b", "ab", "a.log", "b.log", "build", "x y", "[a]", "!a", "#a", "a.b"]
PATTERNS = [
    "a", "b/", "/a", "/b/", "*.log", "!a.log", "!b/", "a/b", "a/**", "**/b", "a/**/b", "**", "*", "!*/", "!/a",
    "a*", "?b", "[ab]", "[!a]", "[a-b].log", r"\!a", r"\#a", "# comment", "", "x y", "x\\ y", "a ", "/*", "build/*",
    "!build/a", "**/build/", "a/*/b", "[", "[[]a]", r"\[a\]", "*.b", "a**", "**a", "b/**/", "/**/a", "!**/a.log",
]  # fmt: skip

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def random_tree(root: Path, chance: random.Random) -> None:
    for _ in range(40):
        path = root.joinpath(*(chance.choice(NAMES) for _ in range(chance.randint(1, 4))))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in chance.sample(folders, min(3, len(folders))):
        (folder / ".gitignore").write_text("\n".join(chance.sample(PATTERNS, chance.randint(1, 6))))


def kept_by_git(root: Path) -> list[str]:
    words = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    listed = subprocess.run(words, cwd=root, env=environment, capture_output=True, check=True).stdout
    return sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)


def kept(root: Path) -> list[str]:
    return sorted(str(Path(found.path).relative_to(root)) for found in TreeWalk().through(root) if found.is_file)


@needs_git
@pytest.mark.parametrize("seed", range(40))
def test_a_random_tree_is_read_as_git_reads_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text(chance.choice(["ab\n", "*.b\n", ""]))
    random_tree(tmp_path, chance)
    assert kept(tmp_path) == kept_by_git(tmp_path), [
        (str(path.relative_to(tmp_path)), path.read_text()) for path in tmp_path.rglob(".gitignore")
    ]


def test_rules_above_hold_up_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("outer\n")
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / ".gitignore").write_text("inner\n")
    below = repository / "below"
    below.mkdir()
    ignores = ignores_of(below)
    assert ignores.is_ignored(str(below / "inner"), is_folder=False)
    assert not ignores.is_ignored(str(below / "outer"), is_folder=False)
    assert ignores_of(tmp_path).is_ignored(str(tmp_path / "outer"), is_folder=False)


def test_a_gitignore_that_is_no_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.mkfifo(tmp_path / ".gitignore")
    assert kept(tmp_path) == ["a"]


def test_a_range_the_wrong_way_round_matches_nothing() -> None:
    (rule,) = parse_rules(["[z-a]"])
    assert not rule.pattern.fullmatch("m")
