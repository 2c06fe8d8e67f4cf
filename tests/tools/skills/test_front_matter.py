"""Front matter, as far as skills need it."""

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
        (r'd: "odd \x41"', {"d": r"odd \x41"}),
        ("d: >\n  one\n  two\n\n  three\nname: x", {"d": "one two\nthree", "name": "x"}),
        ("d: >-\n  one\n  two", {"d": "one two"}),
        ("d: |\n  one\n    two\nname: x", {"d": "one\n  two", "name": "x"}),
        ("d: one\n  two\n  three", {"d": "one two three"}),
        ('d: "one\n  two"', {"d": "one two"}),
        ("d:\n  later", {"d": "later"}),
        ("tools:\n- a\n- b\nname: x", {"tools": "- a - b", "name": "x"}),
        ("metadata:\n  author: me\nname: x", {"metadata": "author: me", "name": "x"}),
        ("url: https://example.com", {"url": "https://example.com"}),
        ("empty:", {"empty": ""}),
    ],
)
def test_fields_are_read(lines: str, fields: dict[str, str]) -> None:
    assert split_document(f"---\n{lines}\n---\nBody\n---\nmore\n") == (fields, "Body\n---\nmore")


def test_marks_and_line_ends_of_other_systems_are_fine() -> None:
    assert split_document("\ufeff---\r\nname: a\r\n---\r\n\r\nBody\r\n") == ({"name": "a"}, "Body")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must begin with a line ---"),
        ("# Title", "must begin with a line ---"),
        ("---\nname: a\n", "no closing line"),
        ("---\nname a\n---", "line 2 is not of the form"),
        ("---\nname: a\nname: b\n---", "line 3 gives name a second time"),
        ("---\nname: 'a\n---", "line 2 has a quotation mark"),
        ("---\nurl:a\n---", "line 2 is not of the form"),
    ],
)
def test_what_is_broken_is_told_with_its_line(text: str, why: str) -> None:
    with pytest.raises(BadFrontMatter, match=why):
        split_document(text)
