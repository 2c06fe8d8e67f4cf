"""The chat surfaces of `hark serve`: each supervised, all on one agent."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from hark.app.agent import Agent
from hark.app.pairing import Pairing
from hark.app.settings import SettingsError
from hark.protocol.chat import ChatError
from hark.protocol.chat_ledger import ChatLedger
from hark.protocol.names import surface_of
from hark.protocol.session import Session
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.chat_route import ChatServices
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.settings import PLATFORMS, PlatformServices, load_platform
from hark.surfaces.web.hooks import Hooks

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
    return {name: table for name, table in agent.settings.surfaces.items() if name in PLATFORMS}


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
                platform = self._make(name, table)
                self._running[name] = running = RunningSurface(name, table)
                self._tasks.start_soon(self._run, running, platform, name=f"surface {name}")

    def _make(self, name: str, table: Mapping[str, Any]) -> Platform:
        chosen = load_platform(name)
        try:
            settings = chosen.read(table)
            allow, per_minute = settings.allow, settings.per_minute
            if chosen.is_gated:
                allow, per_minute = ("*",), sys.maxsize
            people = People(name, allow, self._pairing, per_minute)
            is_stop, add_hooks = partial(self._agent.is_stop, surface=name), partial(self._hooks.bring, name)
            services = PlatformServices(self._agent.home, people.is_known, is_stop, add_hooks)
            surface = chosen.make(settings, services)
        except msgspec.ValidationError as error:
            raise SettingsError(f"surfaces.{name}: {error}. See docs/{name}.md.") from error
        except (ChatError, ValueError) as error:
            raise SettingsError(f"surfaces.{name}: {error}") from error
        return Platform(surface, settings, people, self._house)

    async def _run(self, running: "RunningSurface", platform: Platform) -> None:
        """Run one until it is gone from the settings. What it still owes is in the ledger, for the next one."""
        self._agent.bench.starts.listen(platform.turn_started)
        try:
            with running.scope:
                await platform.run()
        finally:
            self._agent.bench.starts.leave(platform.turn_started)
            running.ended.set()


@dataclass(frozen=True, slots=True)
class RunningSurface:
    """A surface that runs, and the settings that it was made from."""

    name: str
    table: Mapping[str, Any]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


def house_of(agent: Agent, ledger: ChatLedger) -> ChatServices:
    """Return what the surfaces of an agent share."""

    def opened(name: str) -> Session:
        return agent.session(name, surface_of(name))

    sessions, parts = agent.bench.store.journal.sessions, agent.parts
    return ChatServices(ledger, opened, sessions, parts.ingress(), agent.is_stop, parts.narrator())
