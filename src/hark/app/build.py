"""Builds an agent from its settings. This is the only module that knows every component."""

import os
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hark.app.agent import Agent
from hark.app.builtin_tools import builtin_tools, convert_to_tools
from hark.app.clock import SystemClock
from hark.app.global_pause import GlobalPause
from hark.app.grants import GrantsFile
from hark.app.lifecycle import run_agent
from hark.app.logs import redact_in_logs
from hark.app.reload import MakeRoutes, SettingsReloader, TurnSettingsMaker
from hark.app.services import HomePaths, Services
from hark.app.settings import SettingsError, config
from hark.app.settings.secrets import known_secrets
from hark.app.settings.types import Settings
from hark.app.telemetry import open_telemetry
from hark.command_safety.analysis import ShellAnalyzer
from hark.disk.stored_json import damaged_files_notice
from hark.engine.services import CurrentSettings, EngineServices
from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.router import PAUSED, SessionRouter
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Route, Routes
from hark.engine.turn.spending import DailySpending
from hark.processes.cookies import current_owner
from hark.protocol.clock import Clock
from hark.protocol.commands import ChangeCommand
from hark.protocol.receipts import Refusal
from hark.protocol.store import Store
from hark.tools.undo.undo import Undo

RouteDict = Mapping[str, Any]
ToolLike = Any


@asynccontextmanager
async def open_agent(
    *,
    home: str | Path | None = None,
    routes: Sequence[RouteDict] | None = None,
    tools: Iterable[ToolLike] = (),
    workspace: str | Path | None = None,
    sweeps: bool = True,
    can_ask: bool = True,
    notice: Callable[[str], None] = lambda _: None,
    on_exit_step: Callable[[str], None] = lambda _: None,
    **sections: Mapping[str, Any],
) -> AsyncGenerator[Agent]:
    """Open an agent. Every argument is optional; the settings supply the rest.

    `routes` are dicts with the keys of `[[routes]]`; `provider` may also be an object with a `stream` method. `tools`
    are added to the built-in ones. `sections` override sections of config.toml, as in `limits={"steps": 5}`. With
    `sweeps`, work that an earlier process left unfinished is resumed. `notice` receives messages for the user that
    belong to no session. On exit every running turn is settled within `exit_seconds`, and `on_exit_step` receives the
    name of each exit step.

    Raises:
        SettingsError: The settings can't be used.
        StoreError: The sessions can't be opened.
    """
    clock = SystemClock()
    paths = HomePaths(config.home_directory(home), Path(workspace) if workspace else Path.cwd())
    settings = config.load(paths.home, paths.workspace, dict(sections))
    redact_in_logs(known_secrets(settings))
    if warning := config.ignored_settings_notice(paths.home, paths.workspace):
        notice(warning)
    if warning := damaged_files_notice(paths.home):
        notice(warning)
    owner = current_owner(paths.home)
    async with _open_store(settings, paths.home, clock) as store, _open_route_factory(routes, notice) as make_routes:

        async def change(session: str, command: ChangeCommand) -> Refusal | None:
            return await router.proxy_for(session).change(command)

        services = Services(settings, paths, owner, notice, change)
        default_tools = builtin_tools(services, store, lambda name, order: agent.child(name, order), services.work)
        turn_settings = TurnSettingsMaker(services, default_tools, convert_to_tools(tools, owner), can_ask=can_ask)
        engine_services = EngineServices(
            store=store,
            routes=Routes(await make_routes(settings), clock),
            current=CurrentSettings(turn_settings.make(settings)),
            clock=clock,
            quarantine=Quarantine(),
            spending=DailySpending(store.journal, clock),
            lease_renewal=LeaseRenewal(store.leases, clock),
            workspace=paths.workspace,
            jitter=random.random,
            analyzer=ShellAnalyzer(Path.home()),
            grants=GrantsFile(paths.home / "allowed"),
            snapshots=Undo(paths.home / "undo"),
            running_work=services.work.running,
        )
        engine_services.stopped.add(services.work.stop_children)
        engine_services.resets.add(
            lambda reset: services.work.start_soon(services.reset_session(reset[0], reset[1].keep))
        )
        router = SessionRouter(engine_services, adopts_work=sweeps)
        pause = GlobalPause(services.pause_file, engine_services.current, router.apply_pause)
        engine_services.checks.add(lambda _: pause.check())
        if engine_services.rules.is_paused:
            notice(PAUSED)
        agent = Agent(
            engine_services, router, services, SettingsReloader(engine_services, services, turn_settings, make_routes)
        )
        async with open_telemetry(engine_services, settings, routes or ()), run_agent(agent, router, on_exit_step):
            yield agent


@asynccontextmanager
async def _open_store(settings: Settings, home: Path, clock: Clock) -> AsyncGenerator[Store]:
    owner = f"{os.getpid()}-{clock.new_id()}"
    match settings.store.url:
        case "memory":
            from hark.store.memory import MemoryStore, SharedMemory

            store: Store = MemoryStore(SharedMemory(), owner, clock)
        case "sqlite":
            from hark.store.sqlite import SqliteStore

            store = await SqliteStore.open(home / "hark.db", owner, clock)
        case other:
            raise SettingsError(f"store.url is {other!r}; it must be sqlite or memory.")
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def _open_route_factory(
    route_dicts: Sequence[RouteDict] | None, notice: Callable[[str], None]
) -> AsyncGenerator[MakeRoutes]:
    """Yield a function that creates routes from settings. Routes passed by a program never change."""
    if route_dicts and all(_has_provider_object(route) for route in route_dicts):
        objects = [_route_from_object(route) for route in route_dicts]
        yield lambda _: _return_routes(objects)
        return
    from hark.app.settings.presets import detect_route
    from hark.app.settings.routes import open_route_maker
    from hark.providers.connections import open_session

    async with open_session() as http, open_route_maker(http, notice) as maker:

        async def make(settings: Settings) -> list[Route]:
            return maker.make(settings.routes or (await detect_route(http),), settings.models)

        async def make_from_dicts(settings: Settings) -> list[Route]:
            configured = [route for route in route_dicts or () if not _has_provider_object(route)]
            made = iter(maker.make(config.read_routes(configured), settings.models))
            return [
                _route_from_object(route) if _has_provider_object(route) else next(made) for route in route_dicts or ()
            ]

        yield make_from_dicts if route_dicts else make


async def _return_routes(routes: list[Route]) -> list[Route]:
    return routes


def _has_provider_object(route: RouteDict) -> bool:
    return not isinstance(route.get("provider", ""), str)


def _route_from_object(route: RouteDict) -> Route:
    arguments: dict[str, Any] = {"name": "main", **route}
    return Route(**arguments)
