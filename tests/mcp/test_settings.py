"""`[mcp.servers.NAME]`: what is taken, and what is refused with which words."""

from typing import Any

import pytest

from hark.app.settings.secrets import without_secrets
from hark.mcp.settings import OAuthSettings, ServerSettingsError, Start, expanded, read_servers


def test_a_program_and_an_address_are_read_in_their_order() -> None:
    table = {"two": {"command": "run", "args": ["a"], "start": "eager"}, "one": {"url": "https://host/mcp"}}
    servers = read_servers({"servers": table})
    assert list(servers) == ["two", "one"]
    assert servers["two"].args == ("a",)
    assert servers["two"].start is Start.EAGER
    assert servers["one"].login is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"comand": "x"}, "mcp.servers.one: Object contains unknown field `comand`"),
        ({}, "mcp.servers.one needs either a command"),
        ({"command": "x", "url": "http://h"}, "needs either a command"),
        ({"command": "x", "headers": {"a": "b"}}, "headers and oauth are for a url"),
        ({"url": "http://h", "args": ["x"]}, "args, env and cwd are for a command"),
        ({"url": "ftp://h"}, "neither with http:// nor with https://"),
        ({"command": "x", "start": "soon"}, "Invalid enum value 'soon'"),
        ({"command": "x", "timeout_seconds": 0}, "not above 0"),
        ({"command": "x", "args": "a b"}, "Expected `array`"),
        ("x", "Expected `object`"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(table: Any, words: str) -> None:
    with pytest.raises(ServerSettingsError) as caught:
        read_servers({"servers": {"one": table}})
    assert words in str(caught.value)
    assert "mcp.servers.one" in str(caught.value)


def test_a_name_that_models_could_not_say_is_refused() -> None:
    with pytest.raises(ServerSettingsError, match="letters, digits"):
        read_servers({"servers": {"my server": {"command": "x"}}})


def test_a_key_beside_servers_is_refused() -> None:
    with pytest.raises(ServerSettingsError, match=r"mcp\.server is not a setting"):
        read_servers({"server": {}})


def test_variables_are_filled_in_and_a_missing_one_is_named() -> None:
    assert expanded({"A": "Bearer ${KEY}-${KEY}", "B": "$KEY {KEY}"}, {"KEY": "k"}) == {
        "A": "Bearer k-k",
        "B": "$KEY {KEY}",
    }
    with pytest.raises(ServerSettingsError, match="MISSING, which is not set"):
        expanded({"A": "${MISSING}"}, {})


def test_a_login_is_a_switch_or_a_table() -> None:
    switch, table = {"url": "http://h", "oauth": True}, {"url": "http://h", "oauth": {"client_id": "me"}}
    servers = read_servers({"servers": {"a": switch, "b": table}})
    assert servers["a"].login == OAuthSettings()
    assert servers["b"].login == OAuthSettings(client_id="me")


def test_tools_are_let_through_by_both_lists() -> None:
    settings = read_servers({"servers": {"a": {"command": "x", "tools": ["r", "w"], "deny": ["w"]}}})["a"]
    assert [settings.is_offered(name) for name in ("r", "w", "other")] == [True, False, False]


def test_other_settings_have_another_fingerprint_that_tells_nothing() -> None:
    one = read_servers({"servers": {"a": {"command": "x", "env": {"KEY": "secret"}}}})["a"]
    two = read_servers({"servers": {"a": {"command": "x", "env": {"KEY": "other"}}}})["a"]
    assert one.fingerprint != two.fingerprint
    assert "secret" not in one.fingerprint


def test_what_is_shown_of_the_settings_has_no_secrets() -> None:
    table = {
        "a": {"command": "x", "env": {"ANY": "s3cret"}},
        "b": {"url": "http://h", "headers": {"X": "s3cret"}, "oauth": {"client_secret": "s3cret"}},
    }
    assert "s3cret" not in str(without_secrets({"mcp": {"servers": table}}))
