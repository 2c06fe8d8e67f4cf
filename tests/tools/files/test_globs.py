"""The glob patterns that the file tools accept."""

import pytest

from hark.tools.files.globs import parse_glob
from tests.linear_time import assert_linear


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*.{ts,tsx}", ["a/b.tsx", "b.ts"], ["a.js"]),
        ("src/*.ts", ["src/b.ts"], ["a/src/b.ts", "src/a/b.ts"]),
        ("./src/*.ts", ["src/b.ts"], []),
        ("*.py,*.js", ["a.py", "x/b.js"], ["a.md"]),
        ("*.py, *.js", ["a.py", "x/b.js"], ["a.md"]),
        ("*.{a,{b,c}},d", ["x.a", "x.b", "x.c", "d"], ["x.d"]),
        ("src/", ["src/a", "src/b/c", "x/src/a"], ["src", "a/b"]),
        ("a/src/", ["a/src/b"], ["src/b", "x/a/src/b"]),
        ("!*.md", ["a.py", "b/c"], ["a.md", "b/c.md"]),
        ("!{*.md,docs/}", ["a.py"], ["a.md", "docs/x"]),
        ("*.py,!test_*", ["a.py"], ["test_a.py", "a.js"]),
        ("a[", ["a["], ["a"]),
        ("", ["a", "b/c"], []),
    ],
)
def test_globs_match_names_paths_folders_and_alternatives(glob: str, matching: list[str], other: list[str]) -> None:
    assert [path for path in (*matching, *other) if parse_glob(glob).matches(path)] == matching


def test_an_excluding_glob_applies_to_each_form_of_the_path() -> None:
    assert not parse_glob("!src/gen/*").matches("gen/a", "src/gen/a")
    assert parse_glob("src/gen/*").matches("gen/a", "src/gen/a")


def test_matching_a_hostile_glob_takes_linear_time() -> None:
    glob = parse_glob("*a*a*a*a*a*a*a*x,!**/a*a*a/**/b*b*b")
    assert_linear(lambda size: "a/" * size + "a" * size, glob.matches, 10_000)


def test_a_glob_that_is_too_long_or_has_too_many_braces_is_refused() -> None:
    for pattern in ("a" * 1_001, "{a,b}" * 100, "{a,b}" * 3_000):
        with pytest.raises(ValueError, match=r"longer than|expand to more"):
            parse_glob(pattern)
