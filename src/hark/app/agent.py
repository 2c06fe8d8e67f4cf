"""A running agent: sessions by name, and what surfaces may ask of it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from hark.app.loop_lag import LoopLag
from hark.app.reflection import Reflection
from hark.app.reload import Follow
from hark.app.services import Services
from hark.app.sessions.handle import SessionHandle
from hark.app.sessions.import_history import import_history
from hark.app.settings.types import Settings
from hark.app.slash.meaning import is_command, meaning_of
from hark.app.slash.table import COMMANDS
from hark.engine.services import EngineServices
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.router import Router
from hark.protocol.agent import Busy, ChildLine, CommandLine, GatewayState, Lag, PastMessage, RouteRow, ServerRow
from hark.protocol.commands import Say
from hark.protocol.meaning import StopMeaning
from hark.protocol.names import check_name, child_depth, is_child_of, is_listed, session_of
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import Schedules
from hark.protocol.store import Hit, Query, SessionLine
from hark.tools.delegate import ChildOrder

REFLECTS = ChildOrder(tools=("memory",), steps=6, seconds=60)


class Agent:
    """A running agent. `open_agent` makes it."""

    def __init__(self, bench: EngineServices, router: Router, parts: Services, follow: Follow) -> None:
        """`follow` takes other settings while it runs: all of them or, with a SettingsError, none."""
        self.bench = bench
        self.parts = parts
        self.follow = follow
        self.home = parts.places.home
        self.loop_lag = LoopLag()
        self.reflection = Reflection(
            lambda name: self.child(name, REFLECTS), is_wanted=lambda: self.settings.memory.reflect
        )
        self._router = router

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.parts.settings

    @property
    def state(self) -> GatewayState:
        """Whether new turns are begun."""
        return GatewayState.DRAINING if self._router.is_draining else GatewayState.READY

    @property
    def commands(self) -> Sequence[CommandLine]:
        """The slash commands."""
        return [CommandLine(command.name, command.takes, command.help) for command in COMMANDS.values()]

    @property
    def schedules(self) -> Schedules:
        """The schedules of the agent's home."""
        from hark.schedules.service import ScheduleDesk

        async def say(session: str, message: Say) -> Receipt:
            handle = self.session(session, "schedule")
            return await handle.say(message.text, message.delivery, id=message.id, author=message.author)

        book = self.parts.schedule_book()
        return ScheduleDesk(book, self.bench.store.journal, self.settings.schedules, self.bench.clock, say, is_command)

    # Sessions.

    def session(self, name: str, surface: str = "python") -> SessionHandle:
        """Return a session; it is made when new, and loads behind the scenes.

        Raises:
            ValueError: A session can't have that name.
        """
        session = SessionHandle(name, self._router, self.bench, self.parts, surface)
        self.reflection.follow(session)
        return session

    def child(self, name: str, order: ChildOrder) -> SessionHandle:
        """Return a child's session, with no more than it was given.

        Raises:
            ValueError: There is no tool of a name that it was given.
        """
        unknown = [tool for tool in order.tools or () if self.bench.tools.get(tool) is None]
        if unknown:
            raise ValueError(f"There is no tool {', '.join(unknown)} that a child could have.")
        limits = self.bench.rules.limits
        steps, seconds = order.steps or limits.steps, order.seconds or limits.seconds
        limits = msgspec.structs.replace(limits, steps=steps, seconds=seconds)
        self._router.charter(name, Restrictions(order.tools, limits))
        return self.session(name)

    def is_stop(self, text: str, surface: str) -> bool:
        """Return whether a text that a person sends on a surface stops what runs."""
        return isinstance(meaning_of(text.strip(), partial(self.parts.is_stop_word, surface=surface)), StopMeaning)

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        return self.bench.clock.new_id()

    async def sessions(self, words: str = "", limit: int = 200) -> list[SessionLine]:
        """Return the sessions, the last changed first; only those with these words in name or title.

        Children are part of their parents.
        """
        lines = await self.bench.store.journal.sessions()
        found = (line for line in lines if is_listed(line.session) and _has(line, words))
        return [line for line, _ in zip(found, range(limit), strict=False)]

    async def children(self, session: str) -> list[ChildLine]:
        """Return the session's children and theirs, each behind its parent."""
        titles = {line.session: line.summary.title for line in await self.bench.store.journal.sessions()}
        names = {name for name in (*titles, *(door.id for door in self.doors)) if is_child_of(name, session)}
        depth = child_depth(session)
        return [
            ChildLine(name, child_depth(name) - depth, titles.get(name, ""), name in self.busy().turns)
            for name in sorted(names)
        ]

    async def search(self, words: str, limit: int = 50) -> list[Hit]:
        """Return the messages in which all the words stand, the newest first."""
        return await self.bench.store.search.find(Query(words, limit=limit))

    async def import_history(self, session: str, past: Sequence[PastMessage]) -> bool:
        """Give a session that has none a past; False when it has one already, or is open."""
        if self.is_open(session):
            return False
        return await import_history(self.bench.store, self.bench.clock, session, past)

    async def timeline(self, turn: str) -> dict[str, Any] | None:
        """Return where a turn's time went; None when there is no such turn."""
        from hark.trace.from_journal import children_of, story_of, turns_of
        from hark.trace.turn_trace import as_json

        journal = self.bench.store.journal
        try:
            records = await journal.read(check_name(session_of(turn)))
        except ValueError:
            return None
        if turn not in turns_of(records):
            return None
        return as_json(story_of(records, turn, await children_of(journal, records, [turn])))

    # The state of this process.

    @property
    def doors(self) -> list[SessionProxy]:
        """The sessions that are open in this process."""
        return self._router.doors

    def is_open(self, session: str) -> bool:
        """Return whether a session is open in this process."""
        return self._router.opened(session) is not None

    async def drain(self) -> None:
        """Begin no more turns, and return when those that run have ended. Bound it from outside."""
        await self._router.drain()

    def busy(self) -> Busy:
        """Return what goes on in this process."""
        doors = self.doors
        running = {door.id: turn.id for door in doors if door.is_busy and (turn := door.state.turn)}
        return Busy(len(doors), running)

    def model(self, session: str) -> str:
        """Return the route that serves a session first, as far as it is loaded here."""
        names = self.bench.routes.names
        door = self._router.opened(session)
        chosen = door.state.chosen_route if door else ""
        return chosen if chosen in names else names[0]

    def routes(self) -> list[RouteRow]:
        """Return the routes, in their order."""
        models = {route.name: route.model for route in self.settings.routes}
        return [self._route(name, models.get(name, "")) for name in self.bench.routes.names]

    def servers(self) -> list[ServerRow]:
        """Return the MCP servers."""
        servers = self.parts.servers
        return [
            ServerRow(status.name, status.state, len(status.tools), status.restarts, status.last_error)
            for status in (servers.status() if servers else ())
        ]

    def lag(self) -> Lag:
        """Return how late the event loop is."""
        return self.loop_lag.told()

    async def cost_today(self) -> float:
        """Return the US dollars of all turns that ended since midnight."""
        return await self.bench.spending.today()

    def _route(self, name: str, model: str) -> RouteRow:
        health = self.bench.routes.health(name)
        rests = max(0.0, health.rests_until - self.bench.clock.now())
        return RouteRow(name, model, not rests, health.failures, round(rests, 1))


def _has(line: SessionLine, words: str) -> bool:
    return words.lower() in f"{line.session} {line.summary.title}".lower()
