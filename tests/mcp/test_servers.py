"""All servers together: what is on offer, under which names, from which memory."""

import importlib
import json
import re
import time
from pathlib import Path
from types import ModuleType

import pytest

from hark.mcp.offers import ServerState
from hark.mcp.servers import SILENT_SECONDS
from hark.protocol.messages import Effect
from tests.mcp.mcp_fixture import World, running, small, starting


async def test_tools_stand_in_the_settings_order_under_valid_names(tmp_path: Path) -> None:
    async with running(tmp_path, zoo=small(tools=["echo", "long.name!"]), ant=small(deny=["echo"])) as world:
        names = [tool.spec.name for tool in world.servers.tools()]
        assert (await world.call("zoo__long_name_")).text == "did long.name!"
        assert world.servers.get("ant__echo") is None
    assert names[:3] == ["zoo__echo", "zoo__long_name_", "ant__wait"]
    assert names[-2:] == ["mcp_resource", "mcp_prompt"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


async def test_every_schema_is_an_object_with_properties(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        schemas = [tool.spec.parameters for tool in world.servers.tools()]
    assert all(schema["type"] == "object" and isinstance(schema["properties"], dict) for schema in schemas)


async def test_a_server_that_is_switched_off_is_not_there(tmp_path: Path) -> None:
    async with running(tmp_path, one=small(enabled=False)) as world:
        assert world.servers.tools() == ()
        assert world.servers.get("one__echo") is None
        assert world.servers.status()[0].state is ServerState.DISABLED


async def test_a_call_before_the_server_is_known_waits_for_it(tmp_path: Path) -> None:
    async with starting(tmp_path, one=small()) as world:
        assert world.servers.tools() == ()
        assert (await world.call("one__echo", text="early")).text == "early"
    assert world.servers.get("other__echo") is None


async def test_what_was_kept_of_other_settings_is_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()):
        pass
    assert World(tmp_path, {"one": small()}).servers.tools()
    assert World(tmp_path, {"one": small("other")}).servers.tools() == ()
    (tmp_path / "cache" / "mcp" / "one.json").write_text("{broken")
    assert World(tmp_path, {"one": small()}).servers.tools() == ()


async def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    async with running(tmp_path, one=small(), two=small()) as world:
        listed = await world.call("mcp_resource", action="list")
        read = await world.call("mcp_resource", action="read", server="two", uri="x://1")
        wrong = await world.call("mcp_resource", action="read", uri="x://1")
    assert listed.text == "one:\nx://1 - one\n\ntwo:\nx://1 - one"
    assert read.text == "the text of it"
    assert (wrong.is_error, wrong.effect) == (True, Effect.NOT_STARTED)


async def test_prompts_are_listed_and_filled_in(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        listed = await world.call("mcp_prompt", action="list", server="one")
        got = await world.call("mcp_prompt", action="get", server="one", name="greet", arguments={"who": "Ada"})
    assert listed.text == "one:\ngreet(who?)"
    assert got.text == "user:\nGreet Ada"


async def test_calls_after_the_end_say_so(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        pass
    output = await world.call("one__echo", text="x")
    assert (output.is_error, output.effect) == (True, Effect.NOT_STARTED)
    assert "Hark is ending" in output.text


async def test_the_kept_offer_holds_no_settings(tmp_path: Path) -> None:
    async with running(tmp_path, one=small(env={"KEY": "s3cret"})):
        pass
    kept = (tmp_path / "cache" / "mcp" / "one.json").read_text()
    assert set(json.loads(kept)) == {"fingerprint", "offer"}
    assert "s3cret" not in kept


async def test_a_server_is_waited_for_while_the_sdk_is_still_being_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def load_slowly(name: str) -> ModuleType:
        time.sleep(1.5 * SILENT_SECONDS)
        return real(name)

    monkeypatch.setattr("hark.mcp.server.importlib.import_module", load_slowly)
    async with running(tmp_path, one=small()) as world:
        assert [row.state for row in world.servers.status()] == [ServerState.CONNECTED]
