"""The tool that searches: both ways to search find the same."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from hark.processes.cookies import this_process
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput
from hark.tools.files.search import SearchTool
from tests.tools.context import FakeContext, call_tool, living
from tests.waiting import at_most, until

RIPGREP = shutil.which("rg")
WAYS = [
    pytest.param(RIPGREP, id="ripgrep", marks=pytest.mark.skipif(RIPGREP is None, reason="it is not installed")),
    pytest.param(None, id="own"),
]
both = pytest.mark.parametrize("way", WAYS)


def make_tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


async def search(way: str | None, root: Path, pattern: str, **arguments: Any) -> ToolOutput:
    return await call_tool(SearchTool(this_process(), way), {"pattern": pattern, **arguments}, FakeContext(root))


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


@both
async def test_it_finds_what_git_does_not_ignore(way: str | None, tmp_path: Path) -> None:
    output = await search(way, make_tree(tmp_path, PROJECT), "find me", show="files")
    assert output.text.split("\n") == FOUND


@both
async def test_without_a_repository_ignores_hold_too(way: str | None, tmp_path: Path) -> None:
    files = {name: content for name, content in PROJECT.items() if not name.startswith(".git/")}
    output = await search(way, make_tree(tmp_path, files), "find me", show="files")
    assert output.text.split("\n") == sorted([*FOUND, "excluded.txt"], key=os.fsencode)


@both
@pytest.mark.parametrize("path", ["src", "./src/", "~~"])
async def test_a_folder_below_has_the_same_rules(way: str | None, path: str, tmp_path: Path) -> None:
    root = make_tree(tmp_path, PROJECT)
    output = await search(way, root, "find me", show="files", path=path.replace("~~", str(root / "src")))
    assert output.text.split("\n") == [name for name in FOUND if name.startswith("src/")]


@both
async def test_lines_come_with_their_numbers_and_context(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, PROJECT)
    output = await search(way, root, "find me", ignore_case=True, context=1, glob="*.{py,txt}", path="a.py")
    assert output == ToolOutput("a.py\n1-one\n2:find me\n3-three\n--\n6-six\n7:FIND ME")
    output = await search(way, root, "find me$", glob="*.txt")
    assert output == ToolOutput("crlf.txt\n1:find me\n\nlatin.txt\n1:caf\ufffd find me\n\nwide.txt\n1:find me")


@both
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
    ],
)
async def test_a_glob_chooses_files(way: str | None, glob: str, names: list[str], tmp_path: Path) -> None:
    output = await search(way, make_tree(tmp_path, PROJECT), "find me", show="files", glob=glob)
    assert output.text.split("\n") == names


@both
async def test_a_glob_may_be_meant_from_the_folder(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, PROJECT)
    for glob in ("sub/*", "src/sub/*"):
        assert (await search(way, root, "find me", path="src", show="files", glob=glob)).text == "src/sub/only_here"


@both
async def test_counts_are_of_lines(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "x x\nx\ny\n", "b": "y\n", "c": "x\n"})
    assert (await search(way, root, "x", show="counts")).text == "a: 2\nc: 1"


@both
async def test_plain_text_is_taken_as_it_is(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "f(x)\nfx\n-e\n"})
    assert (await search(way, root, "f(x)", literal=True)).text == "a\n1:f(x)"
    assert (await search(way, root, "-e", literal=True)).text == "a\n3:-e"


@both
async def test_it_stops_when_it_has_enough(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {f"{number:02}": "x\n" * 20_000 for number in range(10)})
    output = await search(way, root, "x", max_results=3)
    assert output.text.split("\n")[:4] == ["00", "1:x", "2:x", "3:x"]
    assert output.text.split("\n")[4].startswith("[only the first 3 are shown")
    output = await search(way, root, "x", show="files", max_results=2)
    assert output.text.startswith("00\n01\n[only the first 2 are shown")


@both
async def test_a_long_line_is_cut_around_its_match(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a.js": "ä" * 5_000 + "HERE" + "b" * 5_000 + "\n"})
    output = await search(way, root, "HERE")
    assert output.text == "a.js\n1:…" + "ä" * 100 + "HERE" + "b" * 296 + "…"


@both
async def test_a_line_of_many_megabytes_does_no_harm(
    way: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.files.search.LIMIT_SECONDS", 150.0)
    root = make_tree(tmp_path, {"a": b"x" * 6_000_000 + b"\n", "b": "x\n"})
    assert (await search(way, root, "x")).text == "b\n1:x"


@both
async def test_nothing_found_is_no_error(way: str | None, tmp_path: Path) -> None:
    output = await search(way, make_tree(tmp_path, {"a": "b\n"}), "find me")
    assert output == ToolOutput("Nothing matches find me.")


@both
@pytest.mark.parametrize("pattern", ["a(", "[", "*"])
async def test_a_bad_pattern_is_told(way: str | None, pattern: str, tmp_path: Path) -> None:
    output = await search(way, make_tree(tmp_path, {"a": "b\n"}), pattern)
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert output.text.startswith("The pattern can't be used: ")
    assert output.text.endswith("For plain text say literal: true.")


@both
async def test_a_pattern_that_ripgrep_does_not_know_is_still_found(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "foobar\nfoobaz\nxx\n"})
    assert (await search(way, root, "foo(?=baz)")).text == "a\n2:foobaz"
    assert (await search(way, root, r"(x)\1")).text == "a\n3:xx"


@both
async def test_links_and_pipes_are_not_followed(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"a": "x\n"})
    make_tree(tmp_path / "other", {"b": "x\n"})
    (root / "folder").symlink_to(tmp_path / "other")
    (root / "file").symlink_to(tmp_path / "other" / "b")
    os.mkfifo(root / "pipe")
    assert (await search(way, root, "x", show="files")).text == "a"


@both
async def test_what_git_ignores_is_searched_when_named(way: str | None, tmp_path: Path) -> None:
    root = make_tree(tmp_path, PROJECT)
    assert (await search(way, root, "find me", path="build", show="files")).text == "build/out.py"
    assert (await search(way, root, "find me", path="debug.log")).text == "debug.log\n1:find me"


async def test_where_ripgrep_is_not_installed_our_own_is_used(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a": "x\n"})
    assert (await search("no-such-program", root, "x")).text == "a\n1:x"


async def test_places_that_can_not_be_searched_are_told(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"main.py": "x\n", "b": b"\0x"})
    os.mkfifo(root / "pipe")
    assert "Near it: main.py" in (await search(None, root, "x", path="man.py")).text
    assert "b is binary" in (await search(None, root, "x", path="b")).text
    assert "pipe is a named pipe" in (await search(None, root, "x", path="pipe")).text
    assert "line by line" in (await search(None, root, "x\ny")).text
    assert "it is empty" in (await search(None, root, "")).text
    assert "more than 200" in (await search(None, root, "x", glob="{a,b}" * 9)).text


async def test_modules_of_the_workspace_are_not_run(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"re.py": "raise SystemExit(3)\n", "hark/__init__.py": "raise SystemExit(3)\n"})
    assert (await search(None, root, "raise", show="files")).text == "hark/__init__.py\nre.py"


async def test_a_cut_ends_a_catastrophic_pattern_at_once(tmp_path: Path) -> None:
    owner = this_process(tmp_path)
    root = make_tree(tmp_path / "root", {"a": "a" * 60 + "b\n"})
    arguments = {"pattern": "(a+)+$"}
    task = asyncio.create_task(call_tool(SearchTool(owner, None), arguments, FakeContext(root)))
    await until(lambda: living(f"{owner.home}:"))
    began = anyio.current_time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert anyio.current_time() - began < at_most(2.0)
    assert not living(f"{owner.home}:")


async def test_a_search_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hark.tools.files.search.LIMIT_SECONDS", 1.5)
    root = make_tree(tmp_path, {"a": "a\n", "b": "a" * 60 + "b\n"})
    output = await search(None, root, "(a+)+$")
    assert output.text == "a\n1:a\n[stopped after 1.5 seconds; there may be more. Narrow the path or glob]"
