"""Values stored by an earlier version keep their meaning: no tag, field, default or enum value changes."""

import msgspec
import pytest
from msgspec import inspect

from tests.protocol.stored_values import (
    ROOTS,
    Example,
    explain,
    is_contained,
    load_examples,
    missing_examples,
    stored_types,
    walk_types,
)

EXAMPLES = load_examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.root)
def test_a_stored_value_keeps_its_meaning(example: Example) -> None:
    value = msgspec.json.decode(example.stored, type=ROOTS[example.root])
    assert is_contained(example.meaning, explain(value))
    written = msgspec.json.decode(msgspec.json.encode(value))
    assert is_contained(msgspec.json.decode(example.stored), written), "an older version must be able to read it"


def test_every_stored_struct_field_and_enum_value_has_an_example() -> None:
    assert [line.decode() for line in missing_examples()] == [], "run: python -m tests.protocol.stored_values"


def test_every_type_inside_a_stored_value_has_its_own_examples() -> None:
    seen: set[object] = set()
    inner = {kind.cls for root in ROOTS.values() for kind in walk_types(inspect.type_info(root), seen)}
    with_examples = {
        kind.cls
        for root in ROOTS.values()
        for kind in stored_types(root)
        if isinstance(kind, inspect.StructType | inspect.EnumType)
    }
    assert inner == with_examples
