"""Checks the undocumented library interfaces that the chat surfaces use. A failing test names the changed interface.

The library versions are bounded in pyproject.toml. Raise a bound together with this test.
"""

import inspect
import re
import warnings
from importlib import metadata

import pytest
from aiogram import types
from pydantic import BaseModel
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from hark.surfaces.telegram.surface import USED_METHODS, USED_TYPES, load_library

BOUNDED_LIBRARIES = ("aiogram", "pydantic", "discord-py", "slack-bolt", "slack-sdk", "matrix-nio")


def parameter_names(function: object) -> set[str]:
    assert callable(function)
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", BOUNDED_LIBRARIES)
def test_each_library_whose_internals_are_used_has_an_upper_version_bound(name: str) -> None:
    requirements = [
        text for text in metadata.requires("hark-agent") or [] if re.match(rf"{re.escape(name)}\b(?!-)", text)
    ]
    assert any(re.search(r"<\d", text) for text in requirements), requirements


async def test_discord_py_has_the_internals_that_the_surface_overrides_and_calls() -> None:
    with warnings.catch_warnings():  # from the audio library for voice calls
        warnings.simplefilter("ignore", DeprecationWarning)
        import discord
        from discord import gateway, http
    assert parameter_names(discord.Client.dispatch) == {"self", "event", "args", "kwargs"}
    assert parameter_names(discord.Client.before_identify_hook) == {"self", "shard_id", "initial"}
    assert {"client", "gateway", "session", "sequence", "resume"} <= parameter_names(
        gateway.DiscordWebSocket.from_client
    )
    assert {"poll_event", "open", "close"} <= set(dir(gateway.DiscordWebSocket))
    assert "resume" in parameter_names(gateway.ReconnectWebSocket)
    assert {"stop", "is_alive"} <= set(dir(gateway.KeepAliveHandler))
    assert {"payload", "multipart", "files"} == set(http.MultipartParameters._fields)
    assert http.Route.BASE.startswith("https://")
    client = discord.Client(intents=discord.Intents.none())
    assert "_global_over" in http.HTTPClient.__init__.__code__.co_names
    assert client._connection is not None  # pyright: ignore[reportPrivateUsage]
    assert {"request", "send_message", "edit_message", "send_typing", "add_reaction", "get_bot_gateway"} <= set(
        dir(client.http)
    )
    await client.close()


async def test_the_slack_library_has_the_internals_that_socket_mode_overrides_and_calls() -> None:
    overridden = ("receive_messages", "process_message", "connect_to_new_endpoint")
    assert all(inspect.iscoroutinefunction(inspect.getattr_static(SocketModeClient, name)) for name in overridden)
    called = {"connect", "disconnect", "enqueue_message", "run_message_listeners", "send_socket_mode_response"}
    assert called <= set(dir(SocketModeClient))
    client = SocketModeClient("xapp-1")
    state = {"message_queue", "message_processor", "current_session_monitor", "message_receiver", "current_session"}
    state |= {"aiohttp_client_session", "socket_mode_request_listeners", "wss_uri", "closed"}
    assert state <= set(vars(client))
    await client.close()


def test_aiogram_loads_without_its_unused_types_and_leaves_pydantic_unpatched() -> None:
    before = vars(BaseModel)["model_rebuild"].__func__
    load_library()
    assert vars(BaseModel)["model_rebuild"].__func__ is before
    assert set(USED_TYPES) <= set(dir(types))
    from aiogram import methods

    assert set(USED_METHODS) <= set(dir(methods))
    update = types.Update.model_validate({"update_id": 1})
    assert update.update_id == 1
