"""The chat surfaces of `hark serve`. Each is supervised, and all share one agent."""

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
from hark.app.pairing import PairingFile
from hark.app.settings import SettingsError
from hark.protocol.chat import ChatError
from hark.protocol.chat_ledger import ChatLedger
from hark.protocol.names import surface_of_session
from hark.protocol.session import Session
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.chat_route import ChatServices
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.chat.settings import PLATFORMS, PlatformServices, load_platform
from hark.surfaces.web.hooks import Hooks

LOG = logging.getLogger(__name__)


async def run_surfaces(agent: Agent, hooks: Hooks) -> None:
    """Run the chat surfaces in the settings until cancelled, and apply changes to the settings.

    Surfaces that are called over HTTP register their hooks.

    Raises:
        SettingsError: The settings of a surface are invalid.
    """
    while not _configured_surfaces(agent):
        await agent.services.wait_for_new_settings()
    ledger = SqliteChatLedger(agent.home / "gateway.db")
    try:
        async with anyio.create_task_group() as tasks:
            surfaces = ChatSurfaces(agent, chat_services(agent, ledger), hooks, tasks)
            while True:
                settings = agent.settings
                await surfaces.apply_settings(_configured_surfaces(agent))
                while agent.settings is settings:
                    await agent.services.wait_for_new_settings()
    finally:
        with anyio.move_on_after(1.0, shield=True):
            await ledger.close()


def _configured_surfaces(agent: Agent) -> dict[str, Mapping[str, Any]]:
    return {name: table for name, table in agent.settings.surfaces.items() if name in PLATFORMS}


class ChatSurfaces:
    """The running chat surfaces. A surface whose settings change is restarted; the others are not affected."""

    def __init__(self, agent: Agent, services: ChatServices, hooks: Hooks, tasks: TaskGroup) -> None:
        self._agent = agent
        self._services = services
        self._hooks = hooks
        self._tasks = tasks
        self._pairing = PairingFile(agent.home / "pairing.json")
        self._running: dict[str, RunningSurface] = {}

    async def apply_settings(self, configured: Mapping[str, Mapping[str, Any]]) -> None:
        """Run exactly these surfaces. Removed surfaces disconnect from their platforms before new ones start.

        Raises:
            SettingsError: The settings of a surface are invalid.
        """
        outdated = [surface for name, surface in self._running.items() if configured.get(name) != surface.table]
        for surface in outdated:
            surface.scope.cancel()
        for surface in outdated:
            await surface.ended.wait()
            del self._running[surface.name]
            self._hooks.unregister(surface.name)
            LOG.info("%s stopped", surface.name)
        for name, table in configured.items():
            if name not in self._running:
                platform = self._make_platform(name, table)
                self._running[name] = running = RunningSurface(name, table)
                self._tasks.start_soon(self._run, running, platform, name=f"surface {name}")

    def _make_platform(self, name: str, table: Mapping[str, Any]) -> Platform:
        definition = load_platform(name)
        try:
            settings = definition.parse_settings(table)
            allow, per_minute = settings.allow, settings.per_minute
            if definition.checks_senders:
                allow, per_minute = ("*",), sys.maxsize
            sender_policy = SenderPolicy(name, allow, self._pairing, per_minute)
            is_stop, add_hooks = partial(self._agent.is_stop_request, surface=name), partial(self._hooks.register, name)
            services = PlatformServices(self._agent.home, sender_policy.is_allowed, is_stop, add_hooks)
            surface = definition.create_surface(settings, services)
        except msgspec.ValidationError as error:
            raise SettingsError(f"surfaces.{name}: {error}. See docs/{name}.md.") from error
        except (ChatError, ValueError) as error:
            raise SettingsError(f"surfaces.{name}: {error}") from error
        return Platform(surface, settings, sender_policy, self._services)

    async def _run(self, running: "RunningSurface", platform: Platform) -> None:
        """Run a surface until it is removed from the settings. Undelivered messages stay in the ledger."""
        self._agent.engine.turn_started.add(platform.on_turn_started)
        try:
            with running.scope:
                await platform.run()
        finally:
            self._agent.engine.turn_started.remove(platform.on_turn_started)
            running.ended.set()


@dataclass(frozen=True, slots=True)
class RunningSurface:
    """A running surface, and the settings that it was created from."""

    name: str
    table: Mapping[str, Any]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


def chat_services(agent: Agent, ledger: ChatLedger) -> ChatServices:
    """Return the services that all chat surfaces of an agent share."""

    def open_session(name: str) -> Session:
        return agent.session(name, surface_of_session(name))

    sessions, services = agent.engine.store.journal.sessions, agent.services
    return ChatServices(
        ledger, open_session, sessions, services.voice_inbox(), agent.is_stop_request, services.narrator()
    )
