"""The file tools and undo ignore the same files as git."""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from hark.disk.gitignore import MAX_WILDCARDS, load_ignore_scope, parse_rules
from hark.disk.tree_walk import TreeWalk
from hark.tools.undo.blobs import BlobStore
from hark.tools.undo.manifest import EntryKind, SkipReason
from hark.tools.undo.scan import Scan, ScanCancelled, ScanLimits
from tests.waiting import at_most

NAMES = [
    "a", "b", "ab", "a.log", "b.log", "build", "x y", "[a]", "!a", "#a", "a.b", "ä", os.fsdecode(b"\xff"), "a\\", "[",
    "a ", "a\r", "a-z", "]", "a\\ ", "a\n", "B1", "*a", "**", "{a,b}",
]  # fmt: skip
PATTERNS = [
    "a", "b/", "/a", "/b/", "*.log", "!a.log", "!b/", "a/b", "a/**", "**/b", "a/**/b", "**", "*", "!*/", "!/a",
    "a*", "?b", "[ab]", "[!a]", "[a-b].log", r"\!a", r"\#a", "# comment", "", "x y", "x\\ y", "a ", "/*", "build/*",
    "!build/a", "**/build/", "a/*/b", "[", "[[]a]", r"\[a\]", "*.b", "a**", "**a", "b/**/", "/**/a", "!**/a.log",
    "?", "??", "[[:alpha:]]", "[[:digit:][:upper:]]*", "[[:nothing:]]", "[^a]", "[]]", "[]-a]", "[b-a]", "[a-]",
    "[a\\-z]", "***", "a/***/b", "b**/a", "a/b**", "/a**", "a\\", "a\\ ", "a\\\\ ", "a\t", "a\r", "*/", "/", "!", "//a",
    "a//b", "a\\/b", "a[/]b", "a[b/]", "\\a", "!\\a/", "*\\*a", "{a,b}", "*a*b*", "**/a/**/b/**", "a?b", "[!",
    "[[:alpha:]", "\xff", "ä", "?*", "a/?/b", "**//", "a/**//", "*//", "*/a/*", "!a/**", "!*.b", "a**/**",
]  # fmt: skip
HOSTILE_LINES = [
    *(b"%d", b"%d*", b"!%d*", b"*%d?[a-z]*x", b"**/%d/**", b"*a*a*a*a*a*a*a*a*%db", b"**/a/**/a/**/a/**/%d"),
    *(b"[ab]*[!b]*[ab]*[[:alpha:]]*%d", b"**/*a*/**/*a*/**/%d*"),
]
PATTERN_PIECES = ["a", "b", "*", "**", "?", "/", "/", "[ab]", "[!b]", "!", "\\", " ", ".log", "[a-", "]"]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def create_random_tree(root: Path, rng: random.Random) -> None:
    for _ in range(60):
        path = root.joinpath(*(rng.choice(NAMES) for _ in range(rng.randint(1, 4))))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue


def run_git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *arguments], cwd=root, env=environment, input=stdin, capture_output=True).stdout


def list_paths(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (os.path.relpath(f"{folder}/{name}", root) for name in (*folders, *files))


def find_ignored_by_git(root: Path) -> set[str]:
    stdin = b"".join(os.fsencode(path) + b"\0" for path in list_paths(root))
    return {
        os.fsdecode(path) for path in run_git(root, "check-ignore", "-z", "--stdin", stdin=stdin).split(b"\0") if path
    }


def find_ignored_by_file_tools(root: Path) -> set[str]:
    return set(list_paths(root)) - {os.path.relpath(entry.path, root) for entry in TreeWalk().walk(root)}


def find_folders_ignored_by_undo(root: Path, home: Path) -> set[str]:
    scan = Scan(BlobStore(home), os.fsencode(home), ScanLimits(seconds=at_most(60.0)), Event(), {})
    found = scan.run((os.fsencode(root),)).entries
    skipped = [
        path for path, entry in found.items() if entry.kind is EntryKind.SKIPPED and entry.why_not == SkipReason.IGNORED
    ]
    return {os.path.relpath(os.fsdecode(path), root) for path in skipped}


def check_against_git(root: Path, home: Path) -> None:
    ignored = find_ignored_by_git(root)
    rules = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob(".gitignore")}
    assert find_ignored_by_file_tools(root) == ignored, rules
    folders = {path for path in ignored if (root / path).is_dir() and str(Path(path).parent) not in ignored}
    assert find_folders_ignored_by_undo(root, home) == folders, rules


@pytest.fixture(name="root")
def create_repository(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    run_git(root, "init", "-q")
    (root / ".git" / "info").mkdir(exist_ok=True)
    return root


def test_each_pattern_ignores_the_same_files_as_git(root: Path, tmp_path: Path) -> None:
    create_random_tree(root, random.Random(0))
    for pattern in PATTERNS:
        for text in (pattern, f"*\n!*/\n!{pattern}"):
            (root / ".gitignore").write_bytes(os.fsencode(text))
            check_against_git(root, tmp_path / "home")


@pytest.mark.parametrize("seed", range(40))
def test_random_patterns_ignore_the_same_files_as_git_in_random_trees(seed: int, root: Path, tmp_path: Path) -> None:
    rng = random.Random(seed)
    (root / ".git" / "info" / "exclude").write_text(rng.choice(["ab\n", "*.b\n", ""]))
    create_random_tree(root, rng)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts)]
    for folder in rng.sample(folders, min(3, len(folders))):
        lines = rng.sample(PATTERNS, rng.randint(1, 6))
        lines += ["".join(rng.choices(PATTERN_PIECES, k=rng.randint(1, 6))) for _ in range(3)]
        rng.shuffle(lines)
        end = rng.choice(["\n", "\r\n"])
        (folder / ".gitignore").write_bytes(rng.choice([b"", b"\xef\xbb\xbf"]) + os.fsencode(end.join(lines)))
    check_against_git(root, tmp_path / "home")


def test_rules_from_parent_folders_apply_up_to_the_repository_root(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("outer\n")
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / ".gitignore").write_text("inner\n")
    subfolder = repository / "below"
    subfolder.mkdir()
    ignores = load_ignore_scope(subfolder)
    assert ignores.is_ignored(str(subfolder / "inner"), is_folder=False)
    assert not ignores.is_ignored(str(subfolder / "outer"), is_folder=False)
    assert load_ignore_scope(tmp_path).is_ignored(os.fsencode(tmp_path / "outer"), is_folder=False)


def test_a_gitignore_that_is_a_pipe_or_a_symbolic_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("*")
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "a" / ".gitignore").symlink_to(tmp_path / "b")
    (tmp_path / "a" / "c").touch()
    assert sorted(Path(entry.path).name for entry in TreeWalk().walk(tmp_path) if entry.is_file) == ["b", "c"]


@pytest.mark.parametrize("line", HOSTILE_LINES)
def test_a_hostile_gitignore_is_processed_in_bounded_time(line: bytes) -> None:
    started = os.times().user
    rules = parse_rules(b"\n".join(line % number for number in range(20_000)))
    assert not any(rule.matches(b"a/" * 100 + b"a" * 255, is_folder=True) for rule in rules)
    assert os.times().user - started < at_most(4.0)


@pytest.mark.parametrize("line", HOSTILE_LINES)
def test_matching_one_path_never_blocks_other_threads_for_long(line: bytes) -> None:
    rules = parse_rules(b"\n".join(line % number for number in range(20_000))[: 256 * 1024])
    for path in (b"a/" * 2_000 + b"a" * 90, (b"a" * 250 + b"/") * 16, b"a" * 255):
        for wildcard in (wildcard for rule in rules for wildcard in rule.wildcards):
            started = time.thread_time()
            wildcard.fullmatch(path)
            assert time.thread_time() - started < 0.05


@pytest.mark.parametrize("line", HOSTILE_LINES)
def test_the_scan_for_undo_stops_within_seconds_in_a_tree_with_a_hostile_gitignore(line: bytes, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number in range(20):
        (root / ("a" * 200) / f"{'a' * 100}{number}").mkdir(parents=True)
    (root / ".gitignore").write_bytes(b"\n".join(line % number for number in range(20_000))[: 256 * 1024])
    stop = Event()
    stop.set()
    scan = Scan(BlobStore(tmp_path / "home"), os.fsencode(tmp_path / "home"), ScanLimits(), stop, {})
    started = time.thread_time()
    with pytest.raises(ScanCancelled):
        scan.run((os.fsencode(root),))
    assert time.thread_time() - started < 2.0
    assert sum(1 for _ in TreeWalk().walk(root)) >= 1


def test_the_last_rules_still_apply_if_a_gitignore_has_too_many_wildcards() -> None:
    rules = parse_rules(b"\n".join(b"%d*" % number for number in range(10, MAX_WILDCARDS * 2)))
    assert rules[0].matches(b"%d" % (MAX_WILDCARDS * 2 - 1), is_folder=False)
