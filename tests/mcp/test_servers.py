"""All MCP servers together: their tools, tool names, and cached tool lists."""

import importlib
import json
import re
import time
from pathlib import Path
from types import ModuleType

import pytest

from hark.mcp.server_offer import ServerState
from hark.protocol.messages import Effect
from tests.mcp.mcp_fixture import ServersFixture, running_servers, small_server_settings, starting_servers


async def test_tools_are_listed_in_the_order_of_the_settings_with_valid_names(tmp_path: Path) -> None:
    async with running_servers(
        tmp_path, zoo=small_server_settings(tools=["echo", "long.name!"]), ant=small_server_settings(deny=["echo"])
    ) as fixture:
        names = [tool.spec.name for tool in fixture.servers.tools()]
        assert (await fixture.call("zoo__long_name_")).text == "did long.name!"
        assert fixture.servers.get("ant__echo") is None
    assert names[:3] == ["zoo__echo", "zoo__long_name_", "ant__wait"]
    assert names[-2:] == ["mcp_resource", "mcp_prompt"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


async def test_every_tool_schema_is_an_object_with_properties(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        schemas = [tool.spec.parameters for tool in fixture.servers.tools()]
    assert all(schema["type"] == "object" and isinstance(schema["properties"], dict) for schema in schemas)


async def test_a_disabled_server_offers_no_tools(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings(enabled=False)) as fixture:
        assert fixture.servers.tools() == ()
        assert fixture.servers.get("one__echo") is None
        assert fixture.servers.status()[0].state is ServerState.DISABLED


async def test_a_call_waits_for_a_server_whose_tools_are_not_known_yet(tmp_path: Path) -> None:
    async with starting_servers(tmp_path, one=small_server_settings()) as fixture:
        assert fixture.servers.tools() == ()
        assert (await fixture.call("one__echo", text="early")).text == "early"
    assert fixture.servers.get("other__echo") is None


async def test_a_tool_list_cached_under_other_settings_or_in_a_broken_file_is_ignored(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()):
        pass
    assert ServersFixture(tmp_path, {"one": small_server_settings()}).servers.tools()
    assert ServersFixture(tmp_path, {"one": small_server_settings("other")}).servers.tools() == ()
    (tmp_path / "cache" / "mcp" / "one.json").write_text("{broken")
    assert ServersFixture(tmp_path, {"one": small_server_settings()}).servers.tools() == ()


async def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings(), two=small_server_settings()) as fixture:
        listed = await fixture.call("mcp_resource", action="list")
        read = await fixture.call("mcp_resource", action="read", server="two", uri="x://1")
        wrong = await fixture.call("mcp_resource", action="read", uri="x://1")
    assert listed.text == "one:\nx://1 - one\n\ntwo:\nx://1 - one"
    assert read.text == "text of the resource"
    assert (wrong.is_error, wrong.effect) == (True, Effect.NOT_STARTED)


async def test_prompts_are_listed_and_rendered_with_their_arguments(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        listed = await fixture.call("mcp_prompt", action="list", server="one")
        prompt = await fixture.call("mcp_prompt", action="get", server="one", name="greet", arguments={"who": "Ada"})
    assert listed.text == "one:\ngreet(who?)"
    assert prompt.text == "user:\nGreet Ada"


async def test_a_call_after_shutdown_fails_with_an_explanation(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        pass
    output = await fixture.call("one__echo", text="x")
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "Hark is shutting down" in output.text


async def test_a_cached_tool_list_contains_no_settings(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings(env={"KEY": "s3cret"})):
        pass
    cached = (tmp_path / "cache" / "mcp" / "one.json").read_text()
    assert set(json.loads(cached)) == {"fingerprint", "offer"}
    assert "s3cret" not in cached


async def test_a_slow_import_of_the_sdk_does_not_fail_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def load_slowly(name: str) -> ModuleType:
        time.sleep(1.5)
        return real(name)

    monkeypatch.setattr("hark.mcp.server.importlib.import_module", load_slowly)
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        assert [row.state for row in fixture.servers.status()] == [ServerState.CONNECTED]
