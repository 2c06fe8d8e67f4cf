"""The chat surfaces of `hark serve`: each supervised, all on one agent."""

import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import structs

from hark.app.build import Agent
from hark.app.pairing import Pairing
from hark.app.sessions.chat_session import ChatSessionHandle
from hark.app.settings import SettingsError
from hark.protocol.chat import ChatError, ChatSurface
from hark.protocol.chat_ledger import ChatLedger
from hark.protocol.names import session_of
from hark.protocol.records import TurnStarted
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.chat import ChatServices
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.settings import ChatSettings
from hark.surfaces.web.hooks import Hooks

Kind = TypeVar("Kind", bound=ChatSettings)
Made = tuple[ChatSurface, ChatSettings]
LOG = logging.getLogger(__name__)


async def run_surfaces(agent: Agent, hooks: Hooks) -> None:
    """Run the chat surfaces that the settings have, as they have them, until cancelled.

    Those that are called by HTTP bring their hooks.

    Raises:
        SettingsError: The settings of a surface are wrong.
    """
    while not _wanted(agent):
        await agent.parts.changed()
    ledger = SqliteChatLedger(agent.home / "gateway.db")
    try:
        async with anyio.create_task_group() as tasks:
            surfaces = Surfaces(agent, house_of(agent, ledger), hooks, tasks)
            while True:
                settings = agent.settings
                await surfaces.follow(_wanted(agent))
                while agent.settings is settings:
                    await agent.parts.changed()
    finally:
        with anyio.move_on_after(1.0, shield=True):
            await ledger.close()


def _wanted(agent: Agent) -> dict[str, Mapping[str, Any]]:
    return {name: table for name, table in agent.settings.surfaces.items() if name in MAKERS}


class Surfaces:
    """The surfaces that run. One that changes is run anew; the others don't notice."""

    def __init__(self, agent: Agent, house: ChatServices, hooks: Hooks, tasks: TaskGroup) -> None:
        self._agent = agent
        self._house = house
        self._hooks = hooks
        self._tasks = tasks
        self._pairing = Pairing(agent.home / "pairing.json")
        self._running: dict[str, RunningSurface] = {}

    async def follow(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        """Run these. What is gone has let go of its platform before what is new begins.

        Raises:
            SettingsError: The settings of one are wrong.
        """
        gone = [one for name, one in self._running.items() if wanted.get(name) != one.table]
        for one in gone:
            one.scope.cancel()
        for one in gone:
            await one.ended.wait()
            del self._running[one.name]
            self._hooks.forget(one.name)
            LOG.info("%s is stopped", one.name)
        for name, table in wanted.items():
            if name not in self._running:
                made = MAKERS[name](SurfaceConfig(name, table, self._agent, self._pairing, self._hooks))
                self._running[name] = running = RunningSurface(name, table)
                self._tasks.start_soon(self._run, running, *made, name=f"surface {name}")

    async def _run(self, running: "RunningSurface", surface: ChatSurface, settings: ChatSettings) -> None:
        """Run one until it is gone from the settings. What it still owes is in the ledger, for the next one."""
        people = People(surface.name, settings.allow, self._pairing, settings.per_minute)
        platform = Platform(surface, settings, people, self._house)
        began = partial(_tell_start, platform)
        self._agent.bench.starts.listen(began)
        try:
            with running.scope:
                await platform.run()
        finally:
            self._agent.bench.starts.leave(began)
            running.ended.set()


@dataclass(frozen=True, slots=True)
class RunningSurface:
    """A surface that runs, and the settings that it was made from."""

    name: str
    table: Mapping[str, Any]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


@dataclass(frozen=True, slots=True)
class SurfaceConfig:
    """What a surface is made from."""

    name: str
    table: Mapping[str, Any]
    agent: Agent
    pairing: Pairing
    hooks: Hooks

    def read(self, kind: type[Kind]) -> Kind:
        """Return the settings of the surface.

        Raises:
            SettingsError: Something in them is wrong.
        """
        try:
            return msgspec.convert(dict(self.table), kind, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"surfaces.{self.name}: {error}. See docs/{self.name}.md.") from error

    @contextmanager
    def telling(self) -> Generator[Hooks]:
        """Let the surface bring its hooks, and tell in a sentence what it lacks.

        Raises:
            SettingsError: It can't be: no secret to tell forgeries by, a wrong template, or a path that is taken.
        """
        try:
            yield self.hooks
        except (ChatError, ValueError) as error:
            raise SettingsError(f"surfaces.{self.name}: {error}") from error

    def token(self, settings: ChatSettings) -> str:
        """Return the surface's token.

        Raises:
            SettingsError: There is none.
        """
        token = settings.token or os.environ.get(settings.token_env, "")
        if not token:
            where = f"surfaces.{self.name} has no token"
            raise SettingsError(f"{where}: name the variable that holds it in token_env, and set that variable.")
        return token


def _telegram(order: SurfaceConfig) -> Made:
    from hark.surfaces.telegram.settings import TelegramSettings
    from hark.surfaces.telegram.surface import Telegram

    settings = order.read(TelegramSettings)
    return Telegram(settings), settings


def _discord(order: SurfaceConfig) -> Made:
    from hark.surfaces.discord.settings import DiscordSettings
    from hark.surfaces.discord.surface import DiscordSurface

    settings = order.read(DiscordSettings)
    return DiscordSurface(settings, order.token(settings), order.agent.home / "discord.json"), settings


def _slack(order: SurfaceConfig) -> Made:
    from hark.surfaces.slack.settings import SlackSettings
    from hark.surfaces.slack.surface import SlackSurface

    settings = order.read(SlackSettings)
    surface = SlackSurface(settings)
    if settings.mode == "http":
        with order.telling() as hooks:
            hooks.bring(order.name, surface.hook())
    return surface, settings


def _matrix(order: SurfaceConfig) -> Made:
    from hark.surfaces.matrix.settings import MatrixSettings
    from hark.surfaces.matrix.surface import Matrix

    settings = order.read(MatrixSettings)
    people = People("matrix", settings.allow, order.pairing, settings.per_minute)
    return Matrix(settings, order.token(settings), order.agent.home / "matrix", people.is_known), settings


def _webhook(order: SurfaceConfig) -> Made:
    from hark.surfaces.webhook.settings import WebhookSettings
    from hark.surfaces.webhook.surface import Webhook

    settings = order.read(WebhookSettings)
    stop_words = order.agent.parts.stop_words
    with order.telling() as hooks:
        surface = Webhook(settings, stop_words.fits)
        hooks.bring(order.name, *surface.hooks())
    # Who knows the secret is let in; how often a program may talk is counted where it can be told so.
    return surface, structs.replace(settings, allow=("*",), per_minute=sys.maxsize)


# The libraries are imported when a surface is made.
MAKERS: dict[str, Callable[[SurfaceConfig], Made]] = {
    "telegram": _telegram,
    "discord": _discord,
    "slack": _slack,
    "matrix": _matrix,
    "webhook": _webhook,
}


def house_of(agent: Agent, ledger: ChatLedger) -> ChatServices:
    """Return what the surfaces of an agent share."""

    def opened(name: str) -> ChatSessionHandle:
        return agent.session_of(ChatSessionHandle, name, name.partition(":")[0])

    sessions, parts = agent.bench.store.journal.sessions, agent.parts
    return ChatServices(ledger, opened, sessions, parts.ingress(), parts.stop_words.fits, parts.narrator())


def _tell_start(platform: Platform, start: TurnStarted) -> None:
    platform.session_began(session_of(start.turn))
