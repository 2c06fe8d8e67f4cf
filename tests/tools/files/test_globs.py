"""The globs of the file tools."""

from hark.tools.files.globs import alternatives, compile_glob


def test_a_glob_without_a_slash_matches_names_and_braces_hold_alternatives() -> None:
    assert compile_glob("*.{ts,tsx}").fullmatch("a/b.tsx")
    assert not compile_glob("src/*.ts").fullmatch("a/src/b.ts")
    assert compile_glob("./src/*.ts").fullmatch("src/b.ts")
    assert alternatives("{a,b}{c,d}") == ["ac", "ad", "bc", "bd"]
    assert compile_glob("a[").fullmatch("a[")
