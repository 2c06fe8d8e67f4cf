"""The agent, as HTTP uses it."""

from collections.abc import Sequence
from typing import Any

from hark.app.build import Agent
from hark.app.loop_lag import LoopLag
from hark.app.sessions.api_session import AgentApiSession
from hark.app.sessions.import_history import bring
from hark.app.slash.table import find
from hark.protocol.commands import Say
from hark.protocol.gateway import Busy, GatewayState, Lag, PastMessage, RouteRow, ServerRow, SessionRow
from hark.protocol.names import check_name
from hark.protocol.receipts import Receipt
from hark.protocol.store import BACKGROUND, Hit, Query
from hark.schedules.service import ScheduleDesk
from hark.tools.delegate import CHILD
from hark.trace.from_journal import children_of, story_of, turns_of
from hark.trace.turn_trace import as_json


class AgentGateway:
    """One agent; `standing` is set by whoever runs it."""

    def __init__(self, agent: Agent, lag: LoopLag) -> None:
        self.standing = GatewayState.READY
        self._agent = agent
        self._bench = agent.bench
        self._lag = lag

    def session(self, name: str) -> AgentApiSession:
        """Return a session; it is made when something is said in it.

        Raises:
            ValueError: A session can't have that name.
        """
        return AgentApiSession(self._agent, name, lambda: self.standing is GatewayState.DRAINING)

    @property
    def schedules(self) -> ScheduleDesk:
        """The schedules of the agent's home."""

        async def say(session: str, message: Say) -> Receipt:
            name, author = message.id, message.author
            return await self.session(session).say(message.text, message.delivery, id=name, author=author)

        agent, bench = self._agent, self._bench
        book = agent.parts.schedule_book()
        return ScheduleDesk(book, bench.store.journal, agent.settings.schedules, bench.clock, say, find)

    def new_id(self) -> str:
        """Return a name that nothing else has."""
        return self._bench.clock.new_id()

    async def sessions(self, words: str = "", limit: int = 200) -> list[SessionRow]:
        """Return the sessions, the last changed first. Children are part of their parents."""
        rows: list[SessionRow] = []
        for line in await self._bench.store.journal.sessions():
            name, summary = line.session, line.summary
            is_own = BACKGROUND not in name and CHILD not in name
            if is_own and words.lower() in f"{name} {summary.title}".lower():
                facts = (summary.title, summary.turns, summary.updated_at, summary.is_open, summary.is_waiting)
                rows.append(SessionRow(name, *facts))
            if len(rows) >= limit:
                break
        return rows

    async def search(self, words: str, limit: int = 50) -> list[Hit]:
        """Return the messages in which all the words stand, the newest first."""
        return await self._bench.store.search.find(Query(words, limit=limit))

    async def bring(self, session: str, past: Sequence[PastMessage]) -> bool:
        """Give a session that has none a past; False when it has one already, or is open."""
        if self._agent.is_open(session):
            return False
        return await bring(self._bench.store, self._bench.clock, session, past)

    async def timeline(self, turn: str) -> dict[str, Any] | None:
        """Return where a turn's time went; None when there is no such turn."""
        session = turn.rpartition(".")[0]
        try:
            records = await self._bench.store.journal.read(check_name(session))
        except ValueError:
            return None
        if turn not in turns_of(records):
            return None
        children = await children_of(self._bench.store.journal, records, [turn])
        return as_json(story_of(records, turn, children))

    def routes(self) -> list[RouteRow]:
        """Return the routes, in their order."""
        models = {route.name: route.model for route in self._agent.settings.routes}
        return [self._route(name, models.get(name, "")) for name in self._bench.routes.names]

    def servers(self) -> list[ServerRow]:
        """Return the MCP servers."""
        servers = self._agent.parts.servers
        return [
            ServerRow(status.name, status.state, len(status.tools), status.restarts, status.last_error)
            for status in (servers.status() if servers else ())
        ]

    def busy(self) -> Busy:
        """Return what goes on in this process."""
        doors = self._agent.doors
        running = {door.id: turn.id for door in doors if door.is_busy and (turn := door.state.turn)}
        return Busy(len(doors), running)

    def lag(self) -> Lag:
        """Return how late the event loop is."""
        return self._lag.told()

    async def cost_today(self) -> float:
        """Return the US dollars of all turns that ended since midnight."""
        return await self._bench.spending.today()

    def _route(self, name: str, model: str) -> RouteRow:
        health = self._bench.routes.health(name)
        rests = max(0.0, health.rests_until - self._bench.clock.now())
        return RouteRow(name, model, not rests, health.failures, round(rests, 1))
