"""Names of MCP tools are valid for every model API and unique."""

import re

from hark.mcp.server_offer import ToolNames, make_tool_name


def test_a_tool_name_consists_of_the_server_name_and_the_original_tool_name() -> None:
    assert make_tool_name("git", "git_status") == "git__git_status"


def test_every_allocated_name_is_valid_and_unique() -> None:
    names = ToolNames()
    allocated = [
        names.allocate("server", tool) for tool in ("a.b", "a/b", "a b", "ä" * 80, "x" * 200, "x" * 199, "", "a.b")
    ]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in allocated)
    assert len(set(allocated[:7])) == 7


def test_the_same_tools_always_get_the_same_names() -> None:
    tools = ["a.b", "a/b", "x" * 200]
    first, second = ToolNames(), ToolNames()
    assert [first.allocate("s", tool) for tool in tools] == [second.allocate("s", tool) for tool in tools]
