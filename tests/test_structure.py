"""The structure check finds every import and every import cycle."""

import ast
from pathlib import Path

import pytest

from tests.structure import SOURCE, find_cycles, import_graph


def import_graph_of(**sources: str) -> dict[str, frozenset[str]]:
    trees: dict[Path, ast.Module] = {SOURCE / "hark" / f"{name}.py": ast.parse(text) for name, text in sources.items()}
    return dict(import_graph(trees))


@pytest.mark.parametrize(
    "text",
    [
        "import hark.b",
        "from hark.b import name",
        "def act():\n    from hark.b import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hark.b import name",
        "from importlib import import_module\nimport_module('hark.b')",
    ],
)
def test_an_import_counts_wherever_it_appears_in_the_module(text: str) -> None:
    assert import_graph_of(a=text, b="")["hark.a"] == {"hark.b"}


def test_a_cycle_through_several_modules_is_found_once() -> None:
    imports = import_graph_of(
        a="import hark.b", b="def act():\n    import hark.c", c="import hark.a", d="import hark.a"
    )
    assert find_cycles(imports) == [frozenset({"hark.a", "hark.b", "hark.c"})]


def test_modules_that_share_an_import_do_not_form_a_cycle() -> None:
    assert find_cycles(import_graph_of(a="import hark.c", b="import hark.c", c="")) == []
