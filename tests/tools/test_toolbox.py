"""The toolbox: a collection of tools, looked up by name."""

import pytest

from hark.tools.ask import AskTool
from hark.tools.function import tool
from hark.tools.toolbox import Toolbox


@tool
def second() -> None: ...


@tool
def first() -> None: ...


def test_tools_stay_in_order_and_are_found_by_name() -> None:
    toolbox = Toolbox([second, first])
    assert [spec.name for spec in toolbox.specs] == ["second", "first"]
    assert toolbox.get("first") is first
    assert toolbox.get("third") is None


def test_two_tools_with_the_same_name_are_rejected() -> None:
    with pytest.raises(ValueError, match="Two tools are named ask"):
        Toolbox([AskTool(), first, AskTool()])
