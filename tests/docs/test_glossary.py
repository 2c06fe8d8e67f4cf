"""The glossary is short, sorted, and names files and classes that exist."""

import ast
import re

import pytest

from tests.docs.pages import DOCS, ROOT

MAX_ENTRIES = 60
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \|$", re.MULTILINE)
ROWS = _ROW.findall((DOCS / "glossary.md").read_text())


def test_the_glossary_is_sorted_and_has_at_most_60_entries() -> None:
    words = [word for word, _, _ in ROWS]
    assert words == sorted(set(words), key=str.lower)
    assert 30 < len(words) <= MAX_ENTRIES


@pytest.mark.parametrize(("word", "place"), [(word, place) for word, _, place in ROWS])
def test_a_glossary_entry_names_code_that_exists(word: str, place: str) -> None:
    path, _, name = place.partition(": ")
    file = ROOT / "src" / "hark" / path
    assert file.exists(), f"{word}: {path} does not exist"
    if name:
        classes = {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)}
        assert name in classes, f"{word}: {path} has no class {name}"
