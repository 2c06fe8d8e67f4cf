"""The settings in force: what turns get of them, and how others are taken while the agent runs."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, structs

from hark.app.builtin_tools import web_tools
from hark.app.services import Services, servers_of
from hark.app.settings.types import Settings
from hark.app.system_prompt import Remembered, SystemPrompt
from hark.engine.services import EngineServices, Terms
from hark.engine.turn.routes import Route
from hark.protocol.rules import Rules
from hark.protocol.tool import Tool
from hark.tools.toolbox import Toolbox

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


class TurnSettingsMaker:
    """Makes terms, at the start and at each reload. Tools that remember something are the same in all of them."""

    def __init__(self, parts: Services, own: Sequence[Tool], given: Sequence[Tool], *, can_ask: bool) -> None:
        """`own` are the agent's tools, `given` those that a program brings."""
        self._parts = parts
        self._own = own
        self._given = given
        self._can_ask = can_ask

    def make(self, settings: Settings) -> Terms:
        """Return the terms of these settings.

        Raises:
            ValueError: Two tools have the same name.
        """
        delivery = settings.delivery
        alone = settings.schedules.question_seconds
        stop, steer = delivery.after_stop, delivery.steer_before
        rules = Rules(stop, settings.limits, settings.approvals, self._can_ask, steer, alone)
        tools = [*self._own, *web_tools(self._parts, settings.web), *self._given]
        return Terms(rules, Toolbox(tools, self._parts.sources), self._prompt(settings))

    def _prompt(self, settings: Settings) -> SystemPrompt:
        places = self._parts.places
        notes = Remembered(places.home, places.workspace, settings.memory.prompt_characters)
        return SystemPrompt(places.workspace, (self._parts.skills_text, notes))


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
