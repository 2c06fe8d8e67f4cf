"""The one place where the parts meet."""

import os
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hark.app.agent import Agent
from hark.app.builtin_tools import as_tools, own_tools
from hark.app.clock import SystemClock
from hark.app.grants import GrantsFile
from hark.app.lifecycle import running
from hark.app.logs import hide_in_logs
from hark.app.reload import MakeRoutes, Reload, TurnSettingsMaker
from hark.app.services import HomePaths, Services
from hark.app.settings import SettingsError, config
from hark.app.settings.secrets import known_secrets
from hark.app.settings.types import Settings
from hark.app.telemetry import opened_telemetry
from hark.command_safety.analysis import ShellAnalyzer
from hark.engine.services import Current, EngineServices
from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.router import Router
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Route, Routes
from hark.engine.turn.spending import Spending
from hark.processes.cookies import this_process
from hark.protocol.clock import Clock
from hark.protocol.store import Store
from hark.tools.undo.undo import Undo

RouteGiven = Mapping[str, Any]
ToolGiven = Any


@asynccontextmanager
async def open_agent(
    *,
    home: str | Path | None = None,
    routes: Sequence[RouteGiven] | None = None,
    tools: Iterable[ToolGiven] = (),
    workspace: str | Path | None = None,
    sweeps: bool = True,
    can_ask: bool = True,
    notice: Callable[[str], None] = lambda _: None,
    leaving: Callable[[str], None] = lambda _: None,
    **sections: Mapping[str, Any],
) -> AsyncGenerator[Agent]:
    """Open an agent; every argument is optional, as the settings apply.

    `routes` takes dicts with the keys of `[[routes]]` (`provider` may be an object with a `stream` method), `tools`
    adds to the agent's own, `sections` lay over the sections of config.toml: `limits={"steps": 5}`. With `sweeps`,
    work that an earlier process left is taken up. `notice` gets lines that a person should see and that belong to no
    session. At the end every running turn is settled, within `exit_seconds`; `leaving` is told what that waits for.

    Raises:
        SettingsError: The settings can't be used.
        StoreError: The sessions can't be opened.
    """
    clock = SystemClock()
    places = HomePaths(config.home_directory(home), Path(workspace) if workspace else Path.cwd())
    settings = config.load(places.home, places.workspace, dict(sections))
    hide_in_logs(known_secrets(settings))
    if left := config.left_out(places.home, places.workspace):
        notice(left)
    owner = this_process(places.home)
    async with (
        _opened_store(settings, places.home, clock) as store,
        _opened_routes(routes, notice) as make_routes,
    ):
        parts = Services(settings, places, owner, notice)
        own = own_tools(parts, store, lambda name, order: agent.child(name, order))
        terms = TurnSettingsMaker(parts, own, as_tools(tools, owner), can_ask=can_ask)
        bench = EngineServices(
            store=store,
            routes=Routes(await make_routes(settings), clock),
            current=Current(terms.make(settings)),
            clock=clock,
            quarantine=Quarantine(),
            spending=Spending(store.journal, clock),
            tenure=LeaseRenewal(store.leases, clock),
            workspace=places.workspace,
            jitter=random.random,
            analyzer=ShellAnalyzer(Path.home()),
            grants=GrantsFile(places.home / "allowed"),
            snapshots=Undo(places.home / "undo"),
        )
        router = Router(bench, sweeps=sweeps)
        agent = Agent(bench, router, parts, Reload(bench, parts, terms, make_routes))
        async with opened_telemetry(bench, settings, routes or ()), running(agent, router, leaving):
            yield agent


@asynccontextmanager
async def _opened_store(settings: Settings, home: Path, clock: Clock) -> AsyncGenerator[Store]:
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
async def _opened_routes(
    given: Sequence[RouteGiven] | None, notice: Callable[[str], None]
) -> AsyncGenerator[MakeRoutes]:
    """Have what makes the routes of settings; those that a program gives are always the same."""
    if given and all(_is_object(route) for route in given):
        objects = [_object_route(route) for route in given]
        yield lambda _: _same(objects)
        return
    from hark.app.settings.presets import detect
    from hark.app.settings.routes import opened_maker
    from hark.providers.connections import open_session

    async with open_session() as http, opened_maker(http, notice) as maker:

        async def make(settings: Settings) -> list[Route]:
            return maker.make(settings.routes or (await detect(http),), settings.models)

        async def make_given(settings: Settings) -> list[Route]:
            written = [route for route in given or () if not _is_object(route)]
            made = iter(maker.make(config.read_routes(written), settings.models))
            return [_object_route(route) if _is_object(route) else next(made) for route in given or ()]

        yield make_given if given else make


async def _same(routes: list[Route]) -> list[Route]:
    return routes


def _is_object(route: RouteGiven) -> bool:
    return not isinstance(route.get("provider", ""), str)


def _object_route(route: RouteGiven) -> Route:
    given: dict[str, Any] = {"name": "main", **route}
    return Route(**given)
