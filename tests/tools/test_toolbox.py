"""The toolbox."""

import pytest

from hark.tools.ask import Ask
from hark.tools.function import tool
from hark.tools.toolbox import Toolbox


@tool
def second() -> None: ...


@tool
def first() -> None: ...


def test_tools_keep_their_order_and_are_found_by_name() -> None:
    box = Toolbox([second, first])
    assert [spec.name for spec in box.specs] == ["second", "first"]
    assert box.get("first") is first
    assert box.get("third") is None


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Two tools are named ask"):
        Toolbox([Ask(), first, Ask()])
