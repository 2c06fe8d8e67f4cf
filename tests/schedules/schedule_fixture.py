"""Schedules with a real agent, a fake model, and a clock that the test controls."""

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
from hark.protocol.schedules import Run, ScheduleRequest
from hark.schedules.runner import ScheduleRunner
from hark.schedules.service import ScheduleService
from hark.store.schedule_store import SqliteScheduleStore
from tests.fakes.models.behaviours import Behaviour
from tests.fakes.models.server import ModelServer

NINE = 1_763_283_600.0  # 2025-11-16T09:00Z
HOUR = 3600.0


class ManualClock:
    """A fake clock that changes only when the test sets it."""

    def __init__(self, now: float) -> None:
        self.current = now
        self._id_count = 0

    def now(self) -> float:
        return self.current

    def new_id(self) -> str:
        self._id_count += 1
        return f"name-{self._id_count}"


class ScheduleFixture:
    """An agent with a fake model, its schedules, and their runner."""

    def __init__(self, agent: Agent, model: ModelServer, clock: ManualClock) -> None:
        self.agent = agent
        self.model = model
        self.clock = clock
        self.store: SqliteScheduleStore = agent.services.schedule_store()
        self.runner = self.make_runner()
        self.service = ScheduleService(
            self.store, agent.engine.store.journal, agent.settings.schedules, clock, self._send, is_command
        )

    async def _send(self, session: str, say: Say) -> Receipt:
        return await self.agent.session(session).say(say.text, say.delivery, id=say.id, author=say.author)

    def make_runner(self) -> ScheduleRunner:
        return ScheduleRunner(replace(schedule_services(self.agent), clock=self.clock))

    async def add(self, when: str, prompt: str = "do it", **fields: Any) -> str:
        delivery = Delivery(fields.pop("delivery", "queue"))
        order = ScheduleRequest(
            when, prompt, fields.pop("session", "s"), fields.pop("name", "job"), "UTC", delivery, **fields
        )
        return (await self.service.add(order)).name

    async def check_at(self, at: float) -> None:
        """Set the clock and have the runner check for due runs."""
        self.clock.current = at
        await self.runner.check()

    async def last_run(self, name: str = "job") -> Run:
        """Return the stored last run of a schedule."""
        run = next(schedule for schedule in await self.store.all() if schedule.name == name).last
        assert run is not None
        return run

    async def prompts(self, session: str = "s") -> list[tuple[str, str]]:
        """Return (author, text) for each prompt in a session, then ("queued", id) for each queued message."""
        handle = self.agent.session(session)
        texts = [(row.author, row.text) for row in await handle.transcript() if isinstance(row, UserMessage)]
        return [*texts, *[("queued", item.id) for item in await handle.queue()]]


@asynccontextmanager
async def open_schedules(
    tmp_path: Path, script: Sequence[Behaviour] | None = None, **sections: Any
) -> AsyncGenerator[ScheduleFixture]:
    """Open an agent with a model that plays `script`, or that echoes the prompts if `script` is None."""
    async with ModelServer(script) as model:
        name = "echo" if script is None else "fake"
        sections.setdefault("routes", [{"name": "main", "base_url": model.base_url, "model": name}])
        async with open_agent(home=tmp_path / "home", workspace=tmp_path, **sections) as agent:
            yield ScheduleFixture(agent, model, ManualClock(NINE - HOUR))
