"""The chat surfaces of `hark serve`: each supervised, all on one agent."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from hark.app.build import Agent
from hark.app.chat_sessions import ChatSessionHandle
from hark.app.hearing import ChatHearing
from hark.app.pairing import Pairing
from hark.app.settings import SettingsError
from hark.protocol.chat import ChatSurface
from hark.protocol.speech import Transcriber
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.room import House
from hark.surfaces.chat.settings import STOP_WORDS, ChatSettings

Make = Callable[[Mapping[str, Any], Agent], tuple[ChatSurface, ChatSettings]]


@asynccontextmanager
async def chat_surfaces(agent: Agent, transcriber: Transcriber | None) -> AsyncGenerator[None]:
    """Run every chat surface that the settings have, until the end of the block.

    Raises:
        SettingsError: The settings of a surface are wrong.
    """
    makers = _makers()
    chosen = {name: table for name, table in agent.settings.surfaces.items() if name in makers}
    if not chosen:
        yield
        return
    made = [makers[name](table, agent) for name, table in chosen.items()]
    ledger = SqliteChatLedger(agent.home / "gateway.db")
    try:
        house = _house(agent, ledger, transcriber)
        pairing = Pairing(agent.home / "pairing.json")
        async with anyio.create_task_group() as tasks:
            for surface, settings in made:
                people = People(surface.name, settings.allow, pairing, settings.per_minute)
                tasks.start_soon(Platform(surface, settings, people, house).run, name=f"surface {surface.name}")
            yield
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(1.0, shield=True):
            await ledger.close()


def token_of(settings: ChatSettings, name: str) -> str:
    """Return a surface's token.

    Raises:
        SettingsError: There is none.
    """
    token = settings.token or os.environ.get(settings.token_env, "")
    if not token:
        raise SettingsError(f"surfaces.{name} has no token: set token_env to the variable that holds it, and set that.")
    return token


def read_settings(table: Mapping[str, Any], kind: type[ChatSettings], name: str) -> Any:
    """Return the settings of a surface.

    Raises:
        SettingsError: Something in them is wrong.
    """
    try:
        return msgspec.convert(dict(table), kind, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"surfaces.{name}: {error}. See docs/{name}.md.") from error


def _house(agent: Agent, ledger: SqliteChatLedger, transcriber: Transcriber | None) -> House:
    def opened(name: str) -> ChatSessionHandle:
        return agent.session_of(ChatSessionHandle, name, name.partition(":")[0])

    words = {word.casefold() for word in (*STOP_WORDS, *agent.settings.delivery.stop_words)}
    hearing = ChatHearing(transcriber, agent.home / "voice", echo=bool(agent.settings.voice.get("echo", True)))
    return House(ledger, opened, hearing, words)


def _makers() -> dict[str, Make]:
    """Return what makes each surface, by its name; the libraries are imported when one is made."""
    return {}
