"""The glob patterns that the file tools accept."""

import pytest

from hark.tools.files.globs import compile_glob, expand_braces


def test_globs_match_names_paths_and_brace_alternatives() -> None:
    assert compile_glob("*.{ts,tsx}").fullmatch("a/b.tsx")
    assert not compile_glob("src/*.ts").fullmatch("a/src/b.ts")
    assert compile_glob("./src/*.ts").fullmatch("src/b.ts")
    assert expand_braces("{a,b}{c,d}") == ["ac", "ad", "bc", "bd"]
    assert compile_glob("a[").fullmatch("a[")


def test_a_glob_that_is_too_long_or_has_too_many_braces_is_refused() -> None:
    for pattern in ("a" * 1_001, "{a,b}" * 100, "{a,b}" * 3_000):
        with pytest.raises(ValueError, match=r"longer than|expand to more"):
            compile_glob(pattern)
