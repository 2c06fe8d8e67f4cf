"""Interfaces that the platforms' libraries don't document, as the surfaces use them: a change fails here, by name.

The versions are bounded in pyproject.toml; raise a bound together with this test.
"""

import inspect
import re
import warnings
from importlib import metadata

import pytest
from aiogram import types
from pydantic import BaseModel
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from hark.surfaces.telegram.surface import CALLED, USED, load_library

BOUNDED = ("aiogram", "pydantic", "discord-py", "slack-bolt", "slack-sdk", "matrix-nio")


def parameters(function: object) -> set[str]:
    assert callable(function)
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", BOUNDED)
def test_a_library_whose_internals_are_used_has_an_upper_bound(name: str) -> None:
    wanted = [text for text in metadata.requires("hark-agent") or [] if re.match(rf"{re.escape(name)}\b(?!-)", text)]
    assert any(re.search(r"<\d", text) for text in wanted), wanted


async def test_discord_has_the_internals_that_its_surface_overrides_and_calls() -> None:
    with warnings.catch_warnings():  # of the sound library for calls
        warnings.simplefilter("ignore", DeprecationWarning)
        import discord
        from discord import gateway, http
    assert parameters(discord.Client.dispatch) == {"self", "event", "args", "kwargs"}
    assert parameters(discord.Client.before_identify_hook) == {"self", "shard_id", "initial"}
    assert {"client", "gateway", "session", "sequence", "resume"} <= parameters(gateway.DiscordWebSocket.from_client)
    assert {"poll_event", "open", "close"} <= set(dir(gateway.DiscordWebSocket))
    assert "resume" in parameters(gateway.ReconnectWebSocket)
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


async def test_slack_has_the_internals_that_its_socket_mode_overrides_and_calls() -> None:
    overridden = ("receive_messages", "process_message", "connect_to_new_endpoint")
    assert all(inspect.iscoroutinefunction(inspect.getattr_static(SocketModeClient, name)) for name in overridden)
    called = {"connect", "disconnect", "enqueue_message", "run_message_listeners", "send_socket_mode_response"}
    assert called <= set(dir(SocketModeClient))
    client = SocketModeClient("xapp-1")
    state = {"message_queue", "message_processor", "current_session_monitor", "message_receiver", "current_session"}
    state |= {"aiohttp_client_session", "socket_mode_request_listeners", "wss_uri", "closed"}
    assert state <= set(vars(client))
    await client.close()


def test_aiogram_is_loaded_without_its_unused_types_and_pydantic_is_left_as_it_was() -> None:
    before = vars(BaseModel)["model_rebuild"].__func__
    load_library()
    assert vars(BaseModel)["model_rebuild"].__func__ is before
    assert set(USED) <= set(dir(types))
    from aiogram import methods

    assert set(CALLED) <= set(dir(methods))
    update = types.Update.model_validate({"update_id": 1})
    assert update.update_id == 1
