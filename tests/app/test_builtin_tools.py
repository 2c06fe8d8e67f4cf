"""The built-in tools as a whole."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import hark
from hark.app.builtin_tools import file_tools
from hark.processes.cookies import current_owner
from hark.protocol.messages import Effect
from hark.tools.files.edit import STALE_NOTE
from hark.tools.toolbox import Toolbox
from tests.tools.fake_context import FakeContext, call_tool

TOOLS = Toolbox(file_tools(current_owner()))


def test_the_file_tools_have_fixed_names() -> None:
    names = ["read", "write", "edit", "patch", "list", "search", "view_image"]
    assert [spec.name for spec in TOOLS.specs] == names
    assert [spec.name for spec in TOOLS.specs if spec.is_changing] == ["write", "edit", "patch"]


async def test_a_file_written_by_one_tool_is_not_stale_for_another_tool(tmp_path: Path) -> None:
    context = FakeContext(tmp_path)

    async def call(name: str, **arguments: Any) -> str:
        tool = TOOLS.get(name)
        assert tool is not None
        return (await call_tool(tool, arguments, context)).text

    await call("write", path="a", content="one\ntwo\n")
    await call("read", path="a")
    await call("patch", patch="--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n")
    await call("write", path="a", content="1\n2\n3\n")
    assert STALE_NOTE not in await call("edit", path="a", old="2", new="two")
    assert "2:two" in await call("search", pattern="two")
    assert "a  8 B" in await call("list")


@pytest.mark.parametrize("name", ["read", "write", "edit", "patch", "list", "search", "view_image"])
@pytest.mark.parametrize("arguments", [{"path": 3}, {"else": 1}, {"path": [], "patch": {}, "pattern": None}])
async def test_file_tools_reject_invalid_arguments(name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    tool = TOOLS.get(name)
    assert tool is not None
    output = await call_tool(tool, arguments, FakeContext(tmp_path))
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)


async def test_the_schemas_of_all_tools_are_simple_and_have_descriptions(tmp_path: Path) -> None:
    routes = [{"provider": hark.ScriptedProvider([])}]
    async with hark.open(home=tmp_path / "home", workspace=tmp_path, routes=routes) as agent:
        specs = agent.engine.tools.specs
    assert len(specs) >= 17
    for spec in specs:
        text = msgspec.json.encode(spec.parameters).decode()
        assert not re.search(r'"(\$ref|\$defs|title|default|anyOf)":', text), spec.name
        assert (spec.parameters["type"], spec.parameters["additionalProperties"]) == ("object", False)
        for name, schema in spec.parameters["properties"].items():
            assert "type" in schema, (spec.name, name)
            assert "description" in schema or name == "action", (spec.name, name)
        assert spec.description
