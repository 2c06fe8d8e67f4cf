"""The one place where the parts meet."""

import inspect
import os
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from hark.app import config
from hark.app.clock import SystemClock
from hark.app.handle import SessionHandle
from hark.app.prompt import SystemPrompt
from hark.app.settings import Settings, SettingsError
from hark.app.slash import TakenIds
from hark.engine.quarantine import Quarantine
from hark.engine.router import Router
from hark.engine.routes import Route, Routes
from hark.engine.spending import Spending
from hark.engine.tenure import Tenure
from hark.engine.workbench import Tools, Workbench
from hark.protocol.clock import Clock
from hark.protocol.rules import Rules
from hark.protocol.store import Store
from hark.protocol.surface import SessionPort
from hark.protocol.tool import Tool
from hark.tools.cookies import Owner, this_process
from hark.tools.sweep import sweep

RouteGiven = Mapping[str, Any]
ToolGiven = Any


class Agent:
    """A running agent: sessions by name."""

    def __init__(self, bench: Workbench, router: Router, settings: Settings) -> None:
        self.bench = bench
        self.settings = settings
        self._router = router
        self._taken = TakenIds()

    def session(self, name: str, surface: str = "python") -> SessionHandle:
        """Return a session; it is made when new, and loads behind the scenes.

        Raises:
            ValueError: A session can't have that name.
        """
        delivery = self.settings.delivery
        default = delivery.surfaces.get(surface, delivery.default)
        return SessionHandle(name, self._router, self.bench, default, self._taken)


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
    **sections: Mapping[str, Any],
) -> AsyncGenerator[Agent]:
    """Open an agent; every argument is optional, as the settings apply.

    `routes` takes dicts with the keys of `[[routes]]` (`provider` may be an object with a `stream` method), `tools`
    adds to the agent's own, `sections` lay over the sections of config.toml: `limits={"steps": 5}`. With `sweeps`,
    work that an earlier process left is taken up. `notice` gets lines that a person should see and that belong to no
    session. At the end every running turn is settled, within `exit_seconds`.

    Raises:
        SettingsError: The settings can't be used.
        StoreError: The sessions can't be opened.
    """
    clock = SystemClock()
    directory = config.home_directory(home)
    place = Path(workspace) if workspace else Path.cwd()
    settings = config.load(directory, place, dict(sections))
    rules = Rules(settings.delivery.after_stop, settings.limits, settings.approvals, can_ask)
    owner = this_process(directory)
    async with _opened_store(settings, directory, clock) as store, _opened_routes(settings, routes, notice) as opened:
        quarantine = Quarantine()
        bench = Workbench(
            store=store,
            routes=Routes(opened, clock),
            tools=_toolbox(owner, tools, lambda name: agent.session(name)),
            rules=rules,
            clock=clock,
            quarantine=quarantine,
            spending=Spending(store.journal, clock),
            tenure=Tenure(store.leases, clock),
            workspace=place,
            system_prompt=SystemPrompt(place),
            jitter=random.random,
        )
        router = Router(bench, sweeps=sweeps)
        agent = Agent(bench, router, settings)
        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(router.run)
            tasks.start_soon(sweep, owner)  # what a crash left running; nobody waits for it
            try:
                yield agent
            except BaseException as error:  # noqa: BLE001 raised again below, outside of the group that would wrap it
                failure = error
            with anyio.move_on_after(rules.limits.exit_seconds * 0.8, shield=True):
                await router.close()
                await quarantine.close()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


@asynccontextmanager
async def _opened_store(settings: Settings, home: Path, clock: Clock) -> AsyncGenerator[Store]:
    owner = f"{os.getpid()}-{clock.new_id()}"
    match settings.store.url:
        case "memory":
            from hark.store.memory import Memory, MemoryStore

            store: Store = MemoryStore(Memory(), owner, clock)
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
    settings: Settings, given: Sequence[RouteGiven] | None, notice: Callable[[str], None]
) -> AsyncGenerator[list[Route]]:
    if given and all(_is_object(route) for route in given):
        yield [_object_route(route) for route in given]
        return
    from hark.app.detect import detect
    from hark.app.routes import opened_maker
    from hark.providers.connections import open_session

    async with open_session() as http, opened_maker(http, settings.models, notice) as maker:
        if given:
            yield [
                _object_route(route) if _is_object(route) else maker.make(config.read_routes([route])[0])
                for route in given
            ]
        else:
            yield [maker.make(route) for route in settings.routes or (await detect(http),)]


def _is_object(route: RouteGiven) -> bool:
    return not isinstance(route.get("provider", ""), str)


def _object_route(route: RouteGiven) -> Route:
    given: dict[str, Any] = {"name": "main", **route}
    return Route(**given)


def _toolbox(owner: Owner, given: Iterable[ToolGiven], open_session: Callable[[str], SessionPort]) -> Tools:
    from hark.tools.ask import Ask
    from hark.tools.delegate import Delegate
    from hark.tools.function import tool as as_tool
    from hark.tools.shell import Shell
    from hark.tools.toolbox import Toolbox

    own: list[Tool] = [Shell(owner), Ask(), Delegate(open_session)]
    return Toolbox([*own, *(as_tool(one) if inspect.isroutine(one) else one for one in given)])
