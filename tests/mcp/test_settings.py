"""The settings `[mcp.servers.NAME]`: accepted values, and the error messages for rejected values."""

from typing import Any

import pytest

from hark.app.settings.secrets import hide_secrets
from hark.mcp.settings import OAuthSettings, ServerSettingsError, StartMode, expand_variables, read_servers


def test_servers_are_read_in_the_order_of_the_settings() -> None:
    table = {"two": {"command": "run", "args": ["a"], "start": "eager"}, "one": {"url": "https://host/mcp"}}
    servers = read_servers({"servers": table})
    assert list(servers) == ["two", "one"]
    assert servers["two"].args == ("a",)
    assert servers["two"].start is StartMode.EAGER
    assert servers["one"].login is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"comand": "x"}, "mcp.servers.one: Object contains unknown field `comand`"),
        ({}, "mcp.servers.one needs either a command"),
        ({"command": "x", "url": "http://h"}, "needs either a command"),
        ({"command": "x", "headers": {"a": "b"}}, "headers and oauth don't apply"),
        ({"url": "http://h", "args": ["x"]}, "args, env and cwd don't apply"),
        ({"url": "ftp://h"}, "doesn't start with http:// or https://"),
        ({"command": "x", "start": "soon"}, "Invalid enum value 'soon'"),
        ({"command": "x", "timeout_seconds": 0}, "isn't greater than 0"),
        ({"command": "x", "args": "a b"}, "Expected `array`"),
        ("x", "Expected `object`"),
    ],
)
def test_an_invalid_setting_is_reported_with_its_path(table: Any, message: str) -> None:
    with pytest.raises(ServerSettingsError) as caught:
        read_servers({"servers": {"one": table}})
    assert message in str(caught.value)
    assert "mcp.servers.one" in str(caught.value)


def test_a_server_name_with_invalid_characters_is_rejected() -> None:
    with pytest.raises(ServerSettingsError, match="letters, digits"):
        read_servers({"servers": {"my server": {"command": "x"}}})


def test_an_unknown_key_in_the_mcp_section_is_rejected() -> None:
    with pytest.raises(ServerSettingsError, match=r"mcp\.server is not a setting"):
        read_servers({"server": {}})


def test_variables_are_expanded_and_a_missing_variable_is_named() -> None:
    assert expand_variables({"A": "Bearer ${KEY}-${KEY}", "B": "$KEY {KEY}"}, {"KEY": "k"}) == {
        "A": "Bearer k-k",
        "B": "$KEY {KEY}",
    }
    with pytest.raises(ServerSettingsError, match="MISSING, which is not set"):
        expand_variables({"A": "${MISSING}"}, {})


def test_oauth_is_either_a_boolean_or_a_table() -> None:
    switch, table = {"url": "http://h", "oauth": True}, {"url": "http://h", "oauth": {"client_id": "me"}}
    servers = read_servers({"servers": {"a": switch, "b": table}})
    assert servers["a"].login == OAuthSettings()
    assert servers["b"].login == OAuthSettings(client_id="me")


def test_only_allowed_tools_that_are_not_denied_are_available() -> None:
    settings = read_servers({"servers": {"a": {"command": "x", "tools": ["r", "w"], "deny": ["w"]}}})["a"]
    assert [settings.is_offered(name) for name in ("r", "w", "other")] == [True, False, False]


def test_different_settings_have_different_fingerprints_without_secrets() -> None:
    one = read_servers({"servers": {"a": {"command": "x", "env": {"KEY": "secret"}}}})["a"]
    two = read_servers({"servers": {"a": {"command": "x", "env": {"KEY": "other"}}}})["a"]
    assert one.fingerprint != two.fingerprint
    assert "secret" not in one.fingerprint


def test_displayed_settings_contain_no_secrets() -> None:
    table = {
        "a": {"command": "x", "env": {"ANY": "s3cret"}},
        "b": {"url": "http://h", "headers": {"X": "s3cret"}, "oauth": {"client_secret": "s3cret"}},
    }
    assert "s3cret" not in str(hide_secrets({"mcp": {"servers": table}}))


def test_the_wait_for_a_starting_server_has_a_default_and_can_be_set_for_all_or_for_one() -> None:
    servers = {"one": {"command": "x"}, "two": {"command": "x", "wait_seconds": 0}}
    assert [server.wait_seconds for server in read_servers({"servers": servers}).values()] == [10, 0]
    changed = read_servers({"servers": servers, "wait_seconds": "2.5"})
    assert [server.wait_seconds for server in changed.values()] == [2.5, 0]
    assert changed["one"].fingerprint == read_servers({"servers": servers})["one"].fingerprint


@pytest.mark.parametrize("value", [-1, "soon"])
def test_an_invalid_wait_is_rejected(value: Any) -> None:
    with pytest.raises(ServerSettingsError, match=r"mcp\.wait_seconds"):
        read_servers({"wait_seconds": value})
