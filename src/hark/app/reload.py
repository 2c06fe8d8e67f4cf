"""Other settings while the agent runs: all of them or none, and nothing is touched that has not changed."""

from collections.abc import Awaitable, Callable

from msgspec import Struct, structs

from hark.app.services import Services, servers_of
from hark.app.settings.types import Settings
from hark.app.turn_settings import TurnSettingsMaker
from hark.engine.services import EngineServices
from hark.engine.turn.routes import Route

# What holds files, processes or sessions that can't be changed under what runs.
FIXED = ("store", "sandbox", "telemetry")
# What no gateway looks at.
ELSEWHERE = ("terminal",)


class Followed(Struct, frozen=True):
    """The sections that are others now, and what of the rest needs a restart."""

    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


MakeRoutes = Callable[[Settings], Awaitable[list[Route]]]
Follow = Callable[[Settings], Awaitable[Followed]]


class Reload:
    """Has what begins from now on follow other settings. A turn that runs keeps its rules, tools and route."""

    def __init__(
        self, bench: EngineServices, parts: Services, terms: TurnSettingsMaker, make_routes: MakeRoutes
    ) -> None:
        self._bench = bench
        self._parts = parts
        self._terms = terms
        self._make_routes = make_routes

    async def __call__(self, settings: Settings) -> Followed:
        """Take these settings.

        Raises:
            SettingsError: They can't be used; all is as it was.
        """
        before = self._parts.settings
        servers = servers_of(settings)
        terms = self._terms.make(settings)
        routes = await self._make_routes(settings)  # the last that may fail: from here on nothing waits
        self._bench.routes.change(routes)
        self._bench.current.terms = terms
        self._parts.follow(settings, servers)
        return _followed(before, settings)


def _followed(before: Settings, now: Settings) -> Followed:
    old, new = structs.asdict(before), structs.asdict(now)
    others = [name for name in new if old[name] != new[name]]
    changed = tuple(name for name in others if name not in (*FIXED, *ELSEWHERE))
    return Followed(changed, tuple(name for name in others if name in FIXED))
