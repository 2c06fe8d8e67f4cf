"""The glob patterns that the file tools accept."""

from hark.tools.files.globs import compile_glob, expand_braces


def test_globs_match_names_paths_and_brace_alternatives() -> None:
    assert compile_glob("*.{ts,tsx}").fullmatch("a/b.tsx")
    assert not compile_glob("src/*.ts").fullmatch("a/src/b.ts")
    assert compile_glob("./src/*.ts").fullmatch("src/b.ts")
    assert expand_braces("{a,b}{c,d}") == ["ac", "ad", "bc", "bd"]
    assert compile_glob("a[").fullmatch("a[")
