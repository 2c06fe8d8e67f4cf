"""Parsing the front matter of skills."""

import subprocess
import sys
from typing import Any

import pytest

from hark.tools.skills.front_matter import BadFrontMatter, split_document


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        ("name: a\ndescription: b c", {"name": "a", "description": "b c"}),
        (
            "name : a # why\n# comment\n\ndescription: has a colon: here",
            {"name": "a", "description": "has a colon: here"},
        ),
        ("d: 'it''s # no comment'  # this is", {"d": "it's # no comment"}),
        (r'd: "a \"b\" \u00e9\n"', {"d": 'a "b" é\n'}),
        (r'd: "odd \x41"', {"d": "odd A"}),
        ("d: >\n  one\n  two\n\n  three\nname: x", {"d": "one two\nthree\n", "name": "x"}),
        ("d: >-\n  one\n  two", {"d": "one two"}),
        ("d: |\n  one\n    two\nname: x", {"d": "one\n  two\n", "name": "x"}),
        ("d: one\n  two\n  three", {"d": "one two three"}),
        ('d: "one\n  two"', {"d": "one two"}),
        ("d:\n  later", {"d": "later"}),
        ("tools:\n- a\n- b\nname: x", {"tools": ["a", "b"], "name": "x"}),
        ("metadata:\n  author: me\nname: x", {"metadata": {"author": "me"}, "name": "x"}),
        ("url: https://example.com", {"url": "https://example.com"}),
        ("empty:", {"empty": ""}),
        ("tools: [a, 'b c', 1.10]\nversion: 1.10", {"tools": ["a", "b c", "1.10"], "version": "1.10"}),
        ("d: Use it: it's good  # why", {"d": "Use it: it's good"}),
        ("is: yes\nnone: ~\ndate: 2026-01-01", {"is": "yes", "none": "~", "date": "2026-01-01"}),
        ("", {}),
        ("d: !!python/object/apply:os.getcwd []", {"d": []}),
    ],
)
def test_front_matter_fields_are_parsed(lines: str, fields: dict[str, Any]) -> None:
    assert split_document(f"---\n{lines}\n---\nBody\n---\nmore\n") == (fields, "Body\n---\nmore")


def test_byte_order_mark_and_crlf_line_endings_are_accepted() -> None:
    assert split_document("\ufeff---\r\nname: a\r\n---\r\n\r\nBody\r\n") == ({"name": "a"}, "Body")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must begin with a line ---"),
        ("# Title", "must begin with a line ---"),
        ("---\nname: a\n", "needs a closing line"),
        ("---\nname a\n---", "not lines of the form"),
        ("---\nname: a\nname: b\n---", "name occurs twice"),
        ("---\nname: 'a\n---", "not valid YAML: line 2"),
        ("---\nurl:a\n---", "not lines of the form"),
        ("---\nname: a\n b: c\n---", "not valid YAML: line 3"),
        ("---\nname: a\x01\n---", "not valid YAML"),
        ("---\na: &a [x]\nb: *a\n---", "aliases"),
        (f"---\nname: {'[' * 10_000}\n---", "nested more than 20 levels"),
        (f"---\nname: {'a' * 20_000}\n---", "longer than"),
    ],
)
def test_invalid_front_matter_causes_an_error_with_the_line_number(text: str, reason: str) -> None:
    with pytest.raises(BadFrontMatter, match=reason):
        split_document(text)


def test_pyyaml_is_imported_only_when_a_skill_is_read() -> None:
    code = "import sys, hark.tools.skills.catalog; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
