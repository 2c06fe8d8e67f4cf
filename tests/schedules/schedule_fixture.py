"""Schedules on a real agent and a fake model, at a time that the test sets."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hark.app.agent import Agent
from hark.app.build import open_agent
from hark.app.schedules import schedule_services
from hark.app.slash.meaning import is_command
from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import UserMessage
from hark.protocol.receipts import Receipt
from hark.protocol.schedules import Run, ScheduleOrder
from hark.schedules.runner import ScheduleRunner
from hark.schedules.service import ScheduleDesk
from hark.store.schedule_store import SqliteScheduleBook
from tests.fakes.models.behaviours import Behaviour
from tests.fakes.models.server import ModelServer

NINE = 1_763_283_600.0  # 2025-11-16T09:00Z
HOUR = 3600.0


class SetClock:
    """A clock that stands until it is set."""

    def __init__(self, now: float) -> None:
        self.at = now
        self._names = 0

    def now(self) -> float:
        return self.at

    def new_id(self) -> str:
        self._names += 1
        return f"name-{self._names}"


class World:
    """An agent, its schedules, and their runner."""

    def __init__(self, agent: Agent, model: ModelServer, clock: SetClock) -> None:
        self.agent = agent
        self.model = model
        self.clock = clock
        self.book: SqliteScheduleBook = agent.parts.schedule_book()
        self.runner = self.another_runner()
        self.desk = ScheduleDesk(
            self.book, agent.bench.store.journal, agent.settings.schedules, clock, self._say, is_command
        )

    async def _say(self, session: str, say: Say) -> Receipt:
        return await self.agent.session(session).say(say.text, say.delivery, id=say.id, author=say.author)

    def another_runner(self) -> ScheduleRunner:
        return ScheduleRunner(replace(schedule_services(self.agent), clock=self.clock))

    async def add(self, when: str, prompt: str = "do it", **more: Any) -> str:
        delivery = Delivery(more.pop("delivery", "queue"))
        order = ScheduleOrder(when, prompt, more.pop("session", "s"), more.pop("name", "job"), "UTC", delivery, **more)
        return (await self.desk.add(order)).name

    async def look(self, at: float) -> None:
        """Have the runner look at a time."""
        self.clock.at = at
        await self.runner.look()

    async def last(self, name: str = "job") -> Run:
        """Return what the book says of the last run."""
        run = next(schedule for schedule in await self.book.all() if schedule.name == name).last
        assert run is not None
        return run

    async def said(self, session: str = "s") -> list[tuple[str, str]]:
        """Return who said what in a session, the queue behind the transcript."""
        handle = self.agent.session(session)
        texts = [(one.author, one.text) for one in await handle.transcript() if isinstance(one, UserMessage)]
        return [*texts, *[("queued", item.id) for item in await handle.queue()]]


@asynccontextmanager
async def opened(tmp_path: Path, script: Sequence[Behaviour] | None = None, **sections: Any) -> AsyncGenerator[World]:
    """An agent whose model behaves like this, or echoes."""
    async with ModelServer(script) as model:
        name = "echo" if script is None else "fake"
        sections.setdefault("routes", [{"name": "main", "base_url": model.base_url, "model": name}])
        async with open_agent(home=tmp_path / "home", workspace=tmp_path, **sections) as agent:
            yield World(agent, model, SetClock(NINE - HOUR))
