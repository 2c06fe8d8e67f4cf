"""Arguments that are nearly JSON are repaired, and only if their meaning is certain."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hark.text.lenient_json import CutOff, explain_invalid, parse_object
from tests.linear_time import assert_linear

REPAIRED: list[tuple[str, Any]] = [
    ('{"a": 1,}', {"a": 1}),
    ('{"a": [1, 2,],}', {"a": [1, 2]}),
    ("{'a': 'b'}", {"a": "b"}),
    ("{'a': \"it's\"}", {"a": "it's"}),
    ("{'a': '\"x\"'}", {"a": '"x"'}),
    ("{'a': 'x\\'y'}", {"a": "x'y"}),
    ("{a: 1, b_c: 'x'}", {"a": 1, "b_c": "x"}),
    ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}),
    ('```json\n{"a": 1}\n```', {"a": 1}),
    ("```\n{'a': 1}\n```", {"a": 1}),
    ('{"a": "one\ntwo\tthree\x01"}', {"a": "one\ntwo\tthree\x01"}),
    ('"{\\"a\\": 1}"', {"a": 1}),
    ("\"{'a': 1}\"", {"a": 1}),
    ("{'a': 'x, b: y} ]'}", {"a": "x, b: y} ]"}),
    ('{"a": "\\d+\\.py"}', {"a": "\\d+\\.py"}),
    ('{"a": "\\ud83d\\ude00",}', {"a": "😀"}),
    ('{"a": 1e3, "b": -0.5,}', {"a": 1000.0, "b": -0.5}),
]


@pytest.mark.parametrize(("text", "expected"), REPAIRED)
def test_a_near_miss_is_repaired(text: str, expected: Any) -> None:
    assert json.loads(parse_object(text)) == expected


def test_valid_text_is_returned_unchanged() -> None:
    text = '{ "a" : [1.0, "x"],\n "a": 2}'
    assert parse_object(text) is text


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "rm -r build',
        '{"command": "rm -r build"',
        '{"command": "ls", "x',
        "{'command': 'rm -r build",
        '{"command": "x", "list": ["a"',
        '{"command": "x", "list": ["a"}',
        '"{\\"command\\": \\"rm',
        '"{\\"command\\": \\"rm\\""',
        '```json\n{"a": "b"\n```',
        "{",
    ],
)
def test_incomplete_text_is_never_completed(text: str) -> None:
    with pytest.raises(CutOff):
        parse_object(text)
    assert "incomplete" in explain_invalid(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{'a': '\\x08'}", "keys must be strings"),
        ("hello", "invalid character"),
        ("[1]", "Expected object, got array"),
        ("null", "Expected object, got null"),
        ('"hello"', "Expected object, got str"),
        ('{"a": 1} {"b": 2}', "trailing characters"),
        ('{"a": 1} and more', "trailing characters"),
        ('{"command": "echo "a b" > c"}', "expected ',' or '}'"),
        ('{"a": 1 2}', "expected ',' or '}'"),
        ('{"a": "x" "y"}', "expected ',' or '}'"),
        ("{command: ls -la}", "keys must be strings"),
        ('{"a": {}: 1}}', "expected ',' or '}'"),
        ('{"path": "C:\\path\\new"}', "invalid escape"),
        ('{"a": NaN}', "invalid character"),
        ("{'a': '''x'''}", "keys must be strings"),
    ],
)
def test_ambiguous_text_is_rejected_with_the_complaint_about_the_original(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_object(text)
    assert complaint in explain_invalid(text)


def test_the_arguments_of_a_cut_reply_are_not_repaired() -> None:
    assert parse_object('{"a": 1}', is_cut=True) == '{"a": 1}'
    for text in ("{'a': 1}", "", "{}x"):
        with pytest.raises(CutOff):
            parse_object(text, is_cut=True)
    assert "incomplete" in explain_invalid("{'a': 1}")
    assert "incomplete" in explain_invalid(" ")


def is_accepted(text: str) -> bool:
    try:
        parse_object(text)
    except ValueError:
        return False
    return True


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(max_size=9), VALUES, max_size=3)


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(OBJECTS)
def test_a_python_literal_is_read_as_python_reads_it_or_rejected(value: dict[str, Any]) -> None:
    try:
        parsed = json.loads(parse_object(repr(value)))
    except ValueError:
        assert "\\" in repr(value)  # Python has escapes that JSON lacks
    else:
        assert parsed == value


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(OBJECTS, st.data())
def test_a_truncated_object_is_never_accepted(value: dict[str, Any], data: st.DataObject) -> None:
    for text in (json.dumps(value), repr(value), json.dumps(json.dumps(value))):
        length = data.draw(st.integers(0, len(text) - 1))
        assert not is_accepted(text[:length])


@pytest.mark.parametrize(
    ("start", "repeated", "end"),
    [
        ("{'a': '", "x\\'\n", "'}"),
        ("", "{a:", ""),
        ("{'a': ", "'", ""),
        ('{"a": "', 'x" "', '"}'),
        ("{'a': [", "None,", "]}"),
        ("", "```\n", ""),
        ("{'a': '", "\\", ""),
        ("{", "x", ""),
    ],
)
def test_hostile_arguments_are_parsed_in_linear_time(start: str, repeated: str, end: str) -> None:
    assert_linear(lambda size: f"{start}{repeated * size}{end}", explain_invalid, 10_000)
