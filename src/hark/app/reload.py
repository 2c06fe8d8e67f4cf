"""Derives turn settings from the settings, and applies new settings while the agent runs."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, structs

from hark.app.builtin_tools import web_tools
from hark.app.services import Services, read_mcp_servers
from hark.app.settings.types import Settings
from hark.app.system_prompt import MemoryPrompt, SystemPrompt
from hark.engine.services import EngineServices, TurnSettings
from hark.engine.turn.routes import Route
from hark.protocol.rules import Rules
from hark.protocol.tool import Tool
from hark.tools.toolbox import Toolbox

# Sections with files, processes or sessions that can't be replaced while the agent runs.
RESTART_SECTIONS = ("store", "sandbox", "telemetry")
# Sections that the gateway doesn't use.
UNUSED_SECTIONS = ("terminal",)


class ReloadResult(Struct, frozen=True):
    """The sections that changed, and those whose change needs a restart."""

    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


MakeRoutes = Callable[[Settings], Awaitable[list[Route]]]
ApplySettings = Callable[[Settings], Awaitable[ReloadResult]]


class TurnSettingsMaker:
    """Creates turn settings at startup and at each reload. Stateful tools are shared by all turn settings."""

    def __init__(
        self, services: Services, builtin_tools: Sequence[Tool], extra_tools: Sequence[Tool], *, can_ask: bool
    ) -> None:
        """`extra_tools` are tools that a program supplies in addition to the `builtin_tools`."""
        self._services = services
        self._builtin_tools = builtin_tools
        self._extra_tools = extra_tools
        self._can_ask = can_ask

    def make(self, settings: Settings) -> TurnSettings:
        """Return the turn settings derived from `settings`.

        Raises:
            ValueError: Two tools have the same name.
        """
        delivery = settings.delivery
        rules = Rules(
            after_stop=delivery.after_stop,
            limits=settings.limits,
            approvals=settings.approvals,
            can_ask=self._can_ask,
            steer_before=delivery.steer_before,
            unattended_seconds=settings.schedules.question_seconds,
            after_restart=delivery.after_restart,
            sessions=settings.sessions,
            is_paused=self._services.pause_file.exists,
        )
        tools = [*self._builtin_tools, *web_tools(self._services, settings.web), *self._extra_tools]
        return TurnSettings(rules, Toolbox(tools, self._services.sources), self._make_prompt(settings))

    def _make_prompt(self, settings: Settings) -> SystemPrompt:
        paths = self._services.paths
        notes = MemoryPrompt(paths.home, paths.workspace, settings.memory.prompt_characters)
        return SystemPrompt(paths.workspace, (self._services.skills_text, notes))


class SettingsReloader:
    """Applies new settings to everything that starts later. A running turn keeps its rules, tools and route."""

    def __init__(
        self,
        engine_services: EngineServices,
        services: Services,
        turn_settings_maker: TurnSettingsMaker,
        make_routes: MakeRoutes,
    ) -> None:
        self._engine_services = engine_services
        self._services = services
        self._turn_settings_maker = turn_settings_maker
        self._make_routes = make_routes

    async def __call__(self, settings: Settings) -> ReloadResult:
        """Apply these settings.

        Raises:
            SettingsError: The settings can't be used. Nothing has changed.
        """
        before = self._services.settings
        servers = read_mcp_servers(settings)
        turn_settings = self._turn_settings_maker.make(settings)
        routes = await self._make_routes(settings)  # the last step that can fail; nothing below awaits
        self._engine_services.routes.replace_all(routes)
        self._engine_services.current.settings = turn_settings
        self._services.apply_settings(settings, servers)
        return _compare_settings(before, settings)


def _compare_settings(before: Settings, now: Settings) -> ReloadResult:
    old, new = structs.asdict(before), structs.asdict(now)
    different = [name for name in new if old[name] != new[name]]
    changed = tuple(name for name in different if name not in (*RESTART_SECTIONS, *UNUSED_SECTIONS))
    return ReloadResult(changed, tuple(name for name in different if name in RESTART_SECTIONS))
