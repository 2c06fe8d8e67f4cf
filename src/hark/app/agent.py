"""A running agent: its sessions by name, and the state that surfaces may query."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from hark.app.loop_lag import LoopLag
from hark.app.reflection import Reflection
from hark.app.reload import ApplySettings
from hark.app.services import Services
from hark.app.sessions.handle import SessionHandle
from hark.app.sessions.import_history import import_history
from hark.app.settings.types import Settings
from hark.app.slash.command_table import COMMANDS
from hark.app.slash.meaning import is_command, meaning_of
from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.router import SessionRouter
from hark.protocol.agent import (
    ChildInfo,
    CommandInfo,
    GatewayState,
    LagStats,
    McpServerStatus,
    PastMessage,
    RouteStatus,
    RunningTurns,
)
from hark.protocol.commands import Say
from hark.protocol.meaning import StopMeaning
from hark.protocol.names import check_session_name, child_depth, is_descendant, is_listed, session_of_turn
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import Schedules
from hark.protocol.store import SearchHit, SearchQuery, SessionListEntry
from hark.tools.children import ChildOptions

REFLECTION_CHILD = ChildOptions(tools=("memory",), steps=6, seconds=60)


class Agent:
    """A running agent. Create one with `open_agent`."""

    def __init__(
        self, engine_services: EngineServices, router: SessionRouter, services: Services, apply_settings: ApplySettings
    ) -> None:
        """`apply_settings` applies new settings while the agent runs. Nothing changes if it raises SettingsError."""
        self.engine = engine_services
        self.services = services
        self.apply_settings = apply_settings
        self.home = services.paths.home
        self.loop_lag = LoopLag()
        self.reflection = Reflection(
            lambda name: self.child(name, REFLECTION_CHILD),
            is_enabled=lambda: self.settings.memory.reflect and not engine_services.rules.is_paused,
        )
        self._router = router

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        return self.services.settings

    @property
    def state(self) -> GatewayState:
        """`READY`, or `DRAINING` or `PAUSED` when no new turns are started."""
        if self._router.is_closing:
            return GatewayState.DRAINING
        return GatewayState.PAUSED if self.engine.rules.is_paused else GatewayState.READY

    @property
    def commands(self) -> Sequence[CommandInfo]:
        """The slash commands, for help and completion."""
        return [CommandInfo(command.name, command.takes, command.help) for command in COMMANDS.values()]

    @property
    def schedules(self) -> Schedules:
        """The schedules in the agent's home directory."""
        from hark.schedules.service import ScheduleService

        async def say(session: str, message: Say) -> Receipt:
            handle = self.session(session, "schedule")
            return await handle.say(message.text, message.delivery, id=message.id, author=message.author)

        schedule_store = self.services.schedule_store()
        return ScheduleService(
            schedule_store, self.engine.store.journal, self.settings.schedules, self.engine.clock, say, is_command
        )

    # Sessions.

    def session(self, name: str, surface: str = "python") -> SessionHandle:
        """Return the session with this name, creating it if needed. The session loads in the background.

        Raises:
            ValueError: The name is not a valid session name.
        """
        session = SessionHandle(name, self._router, self.engine, self.services, surface)
        self.reflection.follow(session)
        return session

    def child(self, name: str, options: ChildOptions) -> SessionHandle:
        """Return a child session, restricted to the tools and limits in `options`.

        Raises:
            ValueError: `options` names an unknown tool.
        """
        unknown = [tool for tool in options.tools or () if self.engine.tools.get(tool) is None]
        if unknown:
            raise ValueError(f"Unknown tools for a child session: {', '.join(unknown)}.")
        limits = self.engine.rules.limits
        steps, seconds = options.steps or limits.steps, options.seconds or limits.seconds
        limits = msgspec.structs.replace(limits, steps=steps, seconds=seconds)
        self._router.set_restrictions(name, Restrictions(options.tools, limits))
        return self.session(name)

    def is_stop_request(self, text: str, surface: str) -> bool:
        """Return whether `text`, sent by a user on `surface`, is a request to stop."""
        return isinstance(meaning_of(text.strip(), partial(self.services.is_stop_word, surface=surface)), StopMeaning)

    def new_id(self) -> str:
        """Return a new unique id."""
        return self.engine.clock.new_id()

    async def sessions(self, query: str = "", limit: int = 200) -> list[SessionListEntry]:
        """Return the sessions whose name or title contains `query`, most recently changed first.

        Child sessions are not included, since they belong to their parents.
        """
        lines = await self.engine.store.journal.sessions()
        found = (line for line in lines if is_listed(line.session) and _matches_query(line, query))
        return [line for line, _ in zip(found, range(limit), strict=False)]

    async def children(self, session: str) -> list[ChildInfo]:
        """Return the session's children and their descendants, each after its parent."""
        titles = {line.session: line.summary.title for line in await self.engine.store.journal.sessions()}
        names = {name for name in (*titles, *(item.id for item in self.open_sessions)) if is_descendant(name, session)}
        depth = child_depth(session)
        return [
            ChildInfo(name, child_depth(name) - depth, titles.get(name, ""), name in self.running_turns().turns)
            for name in sorted(names)
        ]

    async def search(self, query: str, limit: int = 50) -> list[SearchHit]:
        """Return the messages that contain all words of the query, newest first."""
        return await self.engine.store.search.find(SearchQuery(query, limit=limit))

    async def import_history(self, session: str, messages: Sequence[PastMessage]) -> bool:
        """Import past messages into a new session. Return False if the session is open or has a history."""
        if self.is_open(session):
            return False
        return await import_history(self.engine.store, self.engine.clock, session, messages)

    async def timeline(self, turn: str) -> dict[str, Any] | None:
        """Return the trace of a turn as JSON data, or None if there is no such turn."""
        from hark.trace.from_journal import build_trace, read_child_journals, turn_names
        from hark.trace.turn_trace import as_json

        journal = self.engine.store.journal
        try:
            records = await journal.read(check_session_name(session_of_turn(turn)))
        except ValueError:
            return None
        if turn not in turn_names(records):
            return None
        return as_json(build_trace(records, turn, await read_child_journals(journal, records, [turn])))

    # The state of this process.

    @property
    def open_sessions(self) -> list[SessionProxy]:
        """The sessions that are open in this process."""
        return self._router.proxies

    def is_open(self, session: str) -> bool:
        """Return whether a session is open in this process."""
        return self._router.find_open(session) is not None

    async def drain(self) -> None:
        """Start no new turns and wait until the running ones have ended. The caller sets the time limit."""
        await self._router.drain()

    def running_turns(self) -> RunningTurns:
        """Return the number of sessions open in this process, and their running turns."""
        proxies = self.open_sessions
        running = {proxy.id: turn.id for proxy in proxies if proxy.is_busy and (turn := proxy.state.turn)}
        return RunningTurns(len(proxies), running)

    def first_route(self, session: str) -> str:
        """Return the route that the session tries first: an open session's chosen route, else the first route."""
        names = self.engine.routes.names
        proxy = self._router.find_open(session)
        chosen = proxy.state.chosen_route if proxy else ""
        return chosen if chosen in names else names[0]

    def routes(self) -> list[RouteStatus]:
        """Return the routes with their health, in configured order."""
        models = {route.name: route.model for route in self.settings.routes}
        return [self._route_status(name, models.get(name, "")) for name in self.engine.routes.names]

    def servers(self) -> list[McpServerStatus]:
        """Return the status of each MCP server."""
        servers = self.services.servers
        return [
            McpServerStatus(row.name, row.state, len(row.tools), row.restarts, row.last_error, row.retry_seconds)
            for row in (servers.status() if servers else ())
        ]

    def lag_stats(self) -> LagStats:
        """Return statistics on the event loop lag over the last minute."""
        return self.loop_lag.summary()

    async def cost_today(self) -> float:
        """Return the cost in US dollars of all turns that ended since midnight."""
        return await self.engine.spending.cost_today()

    def _route_status(self, name: str, model: str) -> RouteStatus:
        health = self.engine.routes.health_of(name)
        cooldown_seconds = max(0.0, health.cool_down_until - self.engine.clock.now())
        return RouteStatus(name, model, not cooldown_seconds, health.failures, round(cooldown_seconds, 1))


def _matches_query(line: SessionListEntry, query: str) -> bool:
    return query.lower() in f"{line.session} {line.summary.title}".lower()
