"""Hark's own search program finds the same lines as ripgrep in random trees, with random patterns and globs."""

import contextlib
import io
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hark.tools.files import grep
from hark.tools.files.search_pattern import translate_pattern
from hark.tools.files.search_query import GrepQuery
from hark.tools.files.search_results import GrepResults
from tests.linear_time import assert_linear

RIPGREP = shutil.which("rg")
ATOMS = [
    r"a",
    r"b",
    r"A",
    r"ä",
    r"_",
    r"\x20",
    r".",
    r"\w",
    r"\d",
    r"\s",
    r"\W",
    r"\.",
    r"\-",
    r"-",
    r"[ab]",
    r"[^a]",
    r"[[:upper:]]",
    r"[[:digit:]_]",
    r"[^[:alpha:]]",
    r"[]a]",
    r"[a-c.-]",
    r"[\w.]",
    r"\x61",
    r"^",
    r"$",
    r"\b",
    r"\B",
    r"(?:a|b)",
    r"(b)",
]
QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "+?"]
LINES = st.text("abA_ä .1-(", max_size=8)
NAMES = st.sampled_from(["a.py", "b.js", "c.md", "A", ".h", "x,y", "[z]"])
FOLDERS = st.sampled_from(["", "src/", "src/a/", "lib/", "build/", ".d/"])
GLOB_PARTS = [
    "*.py",
    "*.js",
    "!*.md",
    "src/",
    "src/**",
    "**/a*",
    "?",
    "[!a].js",
    "*.{py,js}",
    "src/*",
    "./a.py",
    "lib/*.{md,js}",
]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    def piece() -> str:
        atom = draw(st.sampled_from(ATOMS))
        return atom + ("" if atom in ("^", "$", r"\b", r"\B") else draw(st.sampled_from(QUANTIFIERS)))

    branches = ["".join(piece() for _ in range(draw(st.integers(1, 3)))) for _ in range(draw(st.integers(1, 2)))]
    return "|".join(branches)


FILES = st.dictionaries(st.tuples(FOLDERS, NAMES).map("".join), st.lists(LINES, max_size=3).map("\n".join), max_size=5)
IGNORES = st.sampled_from(["", "build/\n", "*.md\n!c.md\n", "/src/a\n", "*.js\n"])
QUERIES = st.builds(
    GrepQuery,
    patterns(),
    is_literal=st.booleans(),
    ignores_case=st.booleans(),
    glob=st.lists(st.sampled_from(GLOB_PARTS), max_size=2).map(",".join),
    shows=st.sampled_from(["lines", "files", "counts", "names"]),
    includes_ignored=st.booleans(),
)


def _search_with_ripgrep(query: GrepQuery, folder: str) -> GrepResults:
    assert RIPGREP is not None
    results = GrepResults(query, 1_000)
    command = query.ripgrep_command(RIPGREP)
    run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    results.feed(run.stdout)
    return results


def _search_with_own_program(query: GrepQuery, folder: str) -> GrepResults:
    results, output = GrepResults(query, 1_000), io.BytesIO()
    stdout, sys.stdout = sys.stdout, io.TextIOWrapper(output, write_through=True)
    try:
        with contextlib.chdir(folder):
            grep.main(msgspec.json.encode(query).decode())
        results.feed(output.getvalue())
    finally:
        sys.stdout = stdout
    return results


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")
@settings(derandomize=True, deadline=None, max_examples=250, database=None)
@given(FILES, IGNORES, QUERIES)
def test_both_programs_find_the_same_lines(files: dict[str, str], ignores: str, query: GrepQuery) -> None:
    with TemporaryDirectory() as folder:
        for name, content in {**files, ".gitignore": ignores}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        expected, found = _search_with_ripgrep(query, folder), _search_with_own_program(query, folder)
    assert expected.errors == ""
    assert (found.text, found.count, found.errors) == (expected.text, expected.count, "")


@pytest.mark.parametrize("piece", ["[", "[[:", "[[:alpha:]", "(?<", r"\b{", "a{1", "[]", "a+"])
def test_translating_a_hostile_pattern_takes_linear_time(piece: str) -> None:
    assert_linear(lambda size: piece * size, _translate, 2_000)


def _translate(pattern: str) -> None:
    with contextlib.suppress(ValueError):
        translate_pattern(pattern)
