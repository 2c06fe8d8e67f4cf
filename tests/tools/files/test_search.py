"""The `search` tool: ripgrep and Hark's own search program find the same matches."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.cookies import current_owner
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.search import SearchTool
from tests.tools.fake_context import FakeContext, call_tool, find_processes
from tests.waiting import at_most, until

RIPGREP = shutil.which("rg")
PROGRAMS = [
    pytest.param(RIPGREP, id="ripgrep", marks=pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")),
    pytest.param(None, id="built-in"),
]
with_both_programs = pytest.mark.parametrize("program", PROGRAMS)


@pytest.fixture(autouse=True)
def allow_slow_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the search for a reason more time, because a program may start slowly on a busy machine."""
    monkeypatch.setattr("hark.tools.files.search.REASON_SECONDS", 60.0)


def make_tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


async def search(program: str | None, root: Path, pattern: str, **arguments: Any) -> ToolOutput:
    return await call_tool(SearchTool(current_owner(), program), {"pattern": pattern, **arguments}, FakeContext(root))


PROJECT: dict[str, str | bytes] = {
    ".git/HEAD": "find me\n",
    ".git/info/exclude": "excluded.txt\n",
    ".gitignore": "*.log\n!keep.log\n/build\ncache/\n",
    ".github/work.yml": "find me\n",
    "a.py": "one\nfind me\nthree\nfour\nfive\nsix\nFIND ME\n",
    "binary.bin": b"find me\0\n",
    "build/out.py": "find me\n",
    "cache/x.py": "find me\n",
    "crlf.txt": "find me\r\nend\r\n",
    "debug.log": "find me\n",
    "excluded.txt": "find me\n",
    "keep.log": "find me\n",
    "latin.txt": b"caf\xe9 find me\n",
    "src/.gitignore": "local.py\n!debug.log\n/only_here\n",
    "src/b.py": "x = 'find me'\n",
    "src/build/deep.py": "find me\n",
    "src/debug.log": "find me\n",
    "src/local.py": "find me\n",
    "src/only_here": "find me\n",
    "src/sub/local.py": "find me\n",
    "src/sub/only_here": "find me\n",
    "src/ä b.py": "find me\n",
    "unended": "find me",
    "wide.txt": "find me\n".encode("utf-16"),
}
FOUND = [
    ".github/work.yml",
    "a.py",
    "crlf.txt",
    "keep.log",
    "latin.txt",
    "src/b.py",
    "src/build/deep.py",
    "src/debug.log",
    "src/sub/only_here",
    "src/ä b.py",
    "unended",
    "wide.txt",
]


@with_both_programs
async def test_search_finds_only_files_that_git_does_not_ignore(program: str | None, tmp_path: Path) -> None:
    output = await search(program, make_tree(tmp_path, PROJECT), "find me", show="files")
    assert output.text.split("\n") == FOUND


@with_both_programs
async def test_gitignore_files_apply_even_without_a_repository(program: str | None, tmp_path: Path) -> None:
    files = {name: content for name, content in PROJECT.items() if not name.startswith(".git/")}
    output = await search(program, make_tree(tmp_path, files), "find me", show="files")
    assert output.text.split("\n") == sorted([*FOUND, "excluded.txt"], key=os.fsencode)


@with_both_programs
@pytest.mark.parametrize("path", ["src", "./src/", "~~"])
async def test_searching_a_subfolder_applies_the_same_ignore_rules(
    program: str | None, path: str, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, PROJECT)
    output = await search(program, root, "find me", show="files", path=path.replace("~~", str(root / "src")))
    assert output.text.split("\n") == [name for name in FOUND if name.startswith("src/")]


@with_both_programs
async def test_matches_have_line_numbers_and_context(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, PROJECT)
    output = await search(program, root, "find me", ignore_case=True, context=1, glob="*.{py,txt}", path="a.py")
    assert output == ToolOutput("a.py\n1-one\n2:find me\n3-three\n--\n6-six\n7:FIND ME")
    output = await search(program, root, "find me$", glob="*.txt")
    assert output == ToolOutput("crlf.txt\n1:find me\n\nlatin.txt\n1:caf\ufffd find me\n\nwide.txt\n1:find me")


@with_both_programs
@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py", "src/b.py", "src/build/deep.py", "src/ä b.py"]),
        ("src/*.py", ["src/b.py", "src/ä b.py"]),
        ("**/build/**", ["src/build/deep.py"]),
        ("src/**/*", ["src/b.py", "src/build/deep.py", "src/debug.log", "src/sub/only_here", "src/ä b.py"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("?.py", ["a.py", "src/b.py"]),
        ("*.{log,yml}", [".github/work.yml", "keep.log", "src/debug.log"]),
        ("*.log,*.yml", [".github/work.yml", "keep.log", "src/debug.log"]),
        ("src/build/", ["src/build/deep.py"]),
        ("sub/, keep.*", ["keep.log", "src/sub/only_here"]),
        ("!*.{py,txt,yml}", ["keep.log", "src/debug.log", "src/sub/only_here", "unended"]),
        ("src/,!*.py", ["src/debug.log", "src/sub/only_here"]),
    ],
)
async def test_glob_selects_the_searched_files(
    program: str | None, glob: str, names: list[str], tmp_path: Path
) -> None:
    output = await search(program, make_tree(tmp_path, PROJECT), "find me", show="files", glob=glob)
    assert output.text.split("\n") == names


@with_both_programs
async def test_glob_may_be_relative_to_the_searched_folder_or_the_workspace(
    program: str | None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, PROJECT)
    for glob in ("sub/*", "src/sub/*"):
        assert (await search(program, root, "find me", path="src", show="files", glob=glob)).text == "src/sub/only_here"


@with_both_programs
async def test_counts_are_the_numbers_of_matching_lines(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "x x\nx\ny\n", "b": "y\n", "c": "x\n"})
    assert (await search(program, root, "x", show="counts")).text == "a: 2\nc: 1"


@with_both_programs
async def test_literal_pattern_is_matched_as_plain_text(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "f(x)\nfx\n-e\n"})
    assert (await search(program, root, "f(x)", literal=True)).text == "a\n1:f(x)"
    assert (await search(program, root, "-e", literal=True)).text == "a\n3:-e"


@with_both_programs
async def test_search_stops_at_the_maximum_number_of_results(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {f"{number:02}": "x\n" * 20_000 for number in range(10)})
    output = await search(program, root, "x", max_results=3)
    assert output.text.split("\n")[:4] == ["00", "1:x", "2:x", "3:x"]
    assert output.text.split("\n")[4].startswith("[only the first 3 are shown")
    output = await search(program, root, "x", show="files", max_results=2)
    assert output.text.startswith("00\n01\n[only the first 2 are shown")


@with_both_programs
async def test_a_long_line_is_truncated_around_its_match(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a.js": "ä" * 5_000 + "HERE" + "b" * 5_000 + "\n"})
    output = await search(program, root, "HERE")
    assert output.text == "a.js\n1:…" + "ä" * 100 + "HERE" + "b" * 296 + "…"


@with_both_programs
async def test_a_line_of_several_megabytes_is_skipped(
    program: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.files.search.TIME_LIMIT_SECONDS", 150.0)
    root = make_tree(tmp_path, {"a": b"x" * 6_000_000 + b"\n", "b": "x\n"})
    assert (await search(program, root, "x")).text == "b\n1:x"


@with_both_programs
async def test_an_empty_match_at_the_end_of_a_file_without_a_newline_shows_the_line(
    program: str | None, tmp_path: Path
) -> None:
    assert (await search(program, make_tree(tmp_path, {"a": "1:2:x"}), "$")).text == "a\n1:1:2:x"


@with_both_programs
async def test_a_file_with_a_late_nul_byte_is_searched_up_to_it(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"late": b"x\n" + b"y\n" * 200_000 + b"\0\n"})
    assert (await search(program, root, "x")).text == "late\n1:x"
    assert (await search(program, root, "x", path="late")).text == "late\n1:x"
    assert (await search(program, root, "x", glob="!late")).text == "No matches for x. No file matches the glob !late."


@with_both_programs
async def test_a_search_without_matches_is_not_an_error(program: str | None, tmp_path: Path) -> None:
    output = await search(program, make_tree(tmp_path, {"a": "b\n"}), "find me")
    assert output == ToolOutput("No matches for find me.")


@with_both_programs
async def test_a_search_without_matches_names_the_searched_file_or_folder(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"src/a.py": "b\n", "src/b.py": "find me\n"})
    assert (await search(program, root, "find me", path="src/a.py")).text == "No matches for find me in src/a.py."
    assert (await search(program, root / "src", "find me", path="a.py")).text == "No matches for find me in a.py."
    assert (await search(program, root, "lost", path="src")).text == "No matches for lost in src."


@with_both_programs
async def test_a_search_without_matches_reports_that_no_file_matches_the_glob(
    program: str | None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, {"a.py": "x\n", "src/b.py": "x\n"})
    text = (await search(program, root, "x", glob="*.rs")).text
    assert text == "No matches for x. No file matches the glob *.rs."
    text = (await search(program, root, "x", glob="lib/**/*.py", path="src")).text
    assert text == "No matches for x in src. No file matches the glob lib/**/*.py."
    text = (await search(program, root, "x", glob="*.rs", path="a.py")).text
    assert text == "No matches for x in a.py. The glob *.rs does not match that file."
    assert (await search(program, root, "y", glob="*.py")).text == "No matches for y."


@with_both_programs
async def test_ignored_files_are_searched_on_request_and_mentioned_when_only_they_match(
    program: str | None, tmp_path: Path
) -> None:
    root = make_tree(tmp_path, {**PROJECT, "build/out.py": "only here\n"})
    text = (await search(program, root, "only here")).text
    hint = "Ignored files match, such as build/out.py. Set ignored to true to search them."
    assert text == f"No matches for only here. {hint}"
    assert (await search(program, root, "only here", ignored=True)).text == "build/out.py\n1:only here"
    output = await search(program, root, "find me", ignored=True, show="files", glob="*.log")
    assert output.text.split("\n") == ["debug.log", "keep.log", "src/debug.log"]
    assert (await search(program, root, "nowhere", ignored=True)).text == "No matches for nowhere."


@with_both_programs
@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("[[:upper:]]", [2]),
        ("[^[:alnum:][:space:]]", [3]),
        (r"\<foo", [1, 4]),
        (r"foo\>", [1]),
        (r"\bfoo\b", [1]),
        (r"^\B$", [5]),
        (r"(?<word>foo) (?P<other>bar)", [1]),
        (r"\x42|\u002c", [2, 3]),
        (r"[]x]", []),
        (r"[\]f]oo", [1, 4]),
        (r"^[^\n ]+$", [2, 3, 4]),
        (r"foo\/?bar", [4]),
        ("x{0,1}bar", [1, 4]),
        ("(?i)abc", [2]),
        ("foo(?= )", [1]),
        (r"(o)\1", [1, 4]),
    ],
)
async def test_regular_expressions_match_the_same_lines_with_and_without_ripgrep(
    program: str | None, pattern: str, lines: list[int], tmp_path: Path
) -> None:
    root = make_tree(tmp_path, {"a": "foo bar\nABC\n,\nfoobar\n\n"})
    text = (await search(program, root, pattern)).text
    assert [int(line.partition(":")[0]) for line in text.splitlines()[1:]] == lines


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\pL", "needs ripgrep"),
        ("[a[bc]]", "sets inside sets"),
        ("[a-z&&b]", "sets inside sets"),
        ("a++", "two repetition operators"),
        ("a{1,2}+", "two repetition operators"),
        (r"a\nb", "line by line"),
        ("[[:no:]]", "[:no:] is not a character class"),
        (r"\x{61}", r"incomplete escape \x"),
    ],
)
async def test_patterns_that_need_ripgrep_are_refused_without_it(pattern: str, reason: str, tmp_path: Path) -> None:
    output = await search(None, make_tree(tmp_path, {"a": "aab\n"}), pattern)
    assert output.is_error
    assert reason in output.text


@with_both_programs
@pytest.mark.parametrize("pattern", ["a(", "[", "*", r"a\nb"])
async def test_an_invalid_pattern_causes_an_error_with_advice(
    program: str | None, pattern: str, tmp_path: Path
) -> None:
    output = await search(program, make_tree(tmp_path, {"a": "b\n"}), pattern)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert output.text.startswith("The pattern is invalid: ")
    assert output.text.endswith("To search for plain text, set literal to true.")


@with_both_programs
async def test_patterns_that_ripgrep_does_not_support_still_work(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "foobar\nfoobaz\nxx\n"})
    assert (await search(program, root, "foo(?=baz)")).text == "a\n2:foobaz"
    assert (await search(program, root, r"(x)\1")).text == "a\n3:xx"


@with_both_programs
async def test_symbolic_links_and_named_pipes_are_not_searched(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"a": "x\n"})
    make_tree(tmp_path / "other", {"b": "x\n"})
    (root / "folder").symlink_to(tmp_path / "other")
    (root / "file").symlink_to(tmp_path / "other" / "b")
    os.mkfifo(root / "pipe")
    assert (await search(program, root, "x", show="files")).text == "a"


@with_both_programs
async def test_ignored_paths_are_searched_if_they_are_named_explicitly(program: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, PROJECT)
    assert (await search(program, root, "find me", path="build", show="files")).text == "build/out.py"
    assert (await search(program, root, "find me", path="debug.log")).text == "debug.log\n1:find me"


async def test_harks_own_search_program_is_used_if_ripgrep_is_not_installed(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "x\n"})
    assert (await search("no-such-program", root, "x")).text == "a\n1:x"


async def test_paths_and_patterns_that_cannot_be_searched_cause_an_error(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"main.py": "x\n", "b": b"\0x"})
    os.mkfifo(root / "pipe")
    assert "Similar names: main.py" in (await search(None, root, "x", path="man.py")).text
    assert "b is binary" in (await search(None, root, "x", path="b")).text
    assert "pipe is a named pipe" in (await search(None, root, "x", path="pipe")).text
    assert "line by line" in (await search(None, root, "x\ny")).text
    assert "pattern is empty" in (await search(None, root, "")).text
    assert "more than 200" in (await search(None, root, "x", glob="{a,b}" * 9)).text


async def test_python_modules_in_the_workspace_are_not_imported_by_the_search(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"re.py": "raise SystemExit(3)\n", "hark/__init__.py": "raise SystemExit(3)\n"})
    assert (await search(None, root, "raise", show="files")).text == "hark/__init__.py\nre.py"


async def test_cancelling_kills_a_search_with_a_catastrophic_pattern(tmp_path: Path) -> None:
    owner = current_owner(tmp_path)
    root = make_tree(tmp_path / "root", {"a": "a" * 60 + "b\n"})
    arguments = {"pattern": "(a+)+$"}
    task = asyncio.create_task(call_tool(SearchTool(owner, None), arguments, FakeContext(root)))
    await until(lambda: find_processes(f"{owner.home}:"))
    started = anyio.current_time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert anyio.current_time() - started < at_most(2.0)
    assert not find_processes(f"{owner.home}:")


async def test_a_search_ends_at_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.tools.files.search.TIME_LIMIT_SECONDS", 1.5)
    root = make_tree(tmp_path, {"a": "a\n", "b": "a" * 60 + "b\n"})
    output = await search(None, root, "(a+)+$")
    assert output.text == "a\n1:a\n[stopped after 1.5 seconds. Narrow the path or glob to find more]"
