"""Names of tools: valid for every model API, each of them once."""

import re

from hark.mcp.offers import Names, plain_name


def test_a_plain_name_is_server_and_tool() -> None:
    assert plain_name("git", "git_status") == "git__git_status"


def test_every_name_is_valid_whatever_servers_call_their_tools() -> None:
    names = Names()
    given = [names.give("server", tool) for tool in ("a.b", "a/b", "a b", "ä" * 80, "x" * 200, "x" * 199, "", "a.b")]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in given)
    assert len(set(given[:7])) == 7


def test_the_same_tools_get_the_same_names_again() -> None:
    tools = ["a.b", "a/b", "x" * 200]
    first, second = Names(), Names()
    assert [first.give("s", tool) for tool in tools] == [second.give("s", tool) for tool in tools]
