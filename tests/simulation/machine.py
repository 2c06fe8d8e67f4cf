"""A simulated machine: a process with the real engine that can be killed, paused, closed and called."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import ContextVar, copy_context
from inspect import CORO_CREATED, getcoroutinestate
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import anyio

from hark.command_safety.analysis import ShellAnalyzer
from hark.engine.services import CurrentSettings, EngineServices, TurnSettings
from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.router import SessionRouter
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Route, Routes
from hark.engine.turn.spending import DailySpending
from hark.protocol.commands import Delivery, Say
from hark.protocol.rules import Rules
from hark.protocol.store import StoreError
from tests.engine.null_services import GrantsInMemory, NoSnapshots
from tests.simulation.background import make_background_tools
from tests.simulation.model import MEMORY, REFLECT, QuietPhase, SimulatedModel
from tests.simulation.network_link import NetworkLink
from tests.simulation.observations import Observations
from tests.simulation.storage import SharedState
from tests.simulation.tools import SimulatedTools

T = TypeVar("T")
CLOSE_SECONDS = 5.0
REFLECTION = Restrictions((MEMORY,))
MACHINE: ContextVar["Machine | None"] = ContextVar("machine", default=None)


class MachineDied(Exception):
    """The machine died before it answered a call."""


def register_task(task: "asyncio.Task[Any]") -> None:
    """Register a new task with the machine in whose context it was created."""
    machine = MACHINE.get()
    if machine is not None:
        machine.tasks.append(task)


class Machine:
    """A simulated machine that runs until `kill` or `close`. Its tasks end with it; its committed data remains."""

    def __init__(
        self,
        observations: Observations,
        vault: SharedState,
        link: NetworkLink,
        rules: Rules,
        random: Random,
        quiet: QuietPhase,
        *,
        adopts_work: bool = True,
        lapses: Random | None = None,
        background: Random | None = None,
    ) -> None:
        """With `lapses`, the machine is paused once for longer than its lease, between two requests of a turn.

        With `background`, its turns start background work.
        """
        self.name = link.owner
        self.link = link
        self.tasks: list[asyncio.Task[Any]] = []
        self.is_ready = asyncio.Event()
        self._failure_rate = link.failure_rate
        link.failure_rate = 0.0
        self._observations = observations
        self._vault = vault
        self._store = vault.open(link, lambda: observations.read_commits(link.now(), link.owner))
        work, background_tools = make_background_tools(
            observations, link, quiet, background or random, lambda: self._router
        )
        tools = SimulatedTools(observations, link, quiet, background_tools if background else ())
        self._services = EngineServices(
            store=self._store,
            routes=Routes([Route("main", SimulatedModel(observations, link, random, quiet, lapses, background))], link),
            current=CurrentSettings(TurnSettings(rules, tools, lambda: "You are simulated.")),
            clock=link,
            quarantine=Quarantine(),
            spending=DailySpending(self._store.journal, link),
            lease_renewal=LeaseRenewal(self._store.leases, link),
            workspace=Path("/simulated"),
            jitter=random.random,
            analyzer=ShellAnalyzer(Path("/home/person")),
            grants=GrantsInMemory(),
            snapshots=NoSnapshots(),
            running_work=work.running,
        )
        self._services.stopped.add(work.stop_children)
        self._router = SessionRouter(self._services, adopts_work=adopts_work)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scope = anyio.CancelScope()
        self._context = copy_context()
        self._context.run(MACHINE.set, self)
        self.spawn(self._run(), "router")

    @property
    def has_ended(self) -> bool:
        """Whether the machine can no longer be called."""
        return self._ended.done()

    @property
    def proxy(self) -> SessionProxy:
        """The session's proxy on this machine."""
        return self._context.copy().run(self._router.proxy_for, self._observations.session)

    @property
    def open_sessions(self) -> list[str]:
        """The names of the sessions that are open on this machine."""
        return [proxy.id for proxy in self._router.proxies]

    def reflect(self, session: str) -> None:
        """Start a background session with two messages, as the app does, once the machine is ready."""
        self.spawn(self._reflect(session), "reflect")

    async def _reflect(self, session: str) -> None:
        await self.is_ready.wait()
        self._router.set_restrictions(session, REFLECTION)
        proxy = self._router.proxy_for(session)
        for number in (1, 2):
            with suppress(StoreError):
                await proxy.say(Say(f"{REFLECT}{number}", "Reflect.", Delivery.QUEUE))

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """Run a coroutine on this machine."""
        return asyncio.get_running_loop().create_task(work, name=f"{self.name} {name}", context=self._context.copy())

    async def call(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Run a coroutine for a user.

        Raises:
            MachineDied: The machine died or was closed before it answered.
        """
        if self.has_ended:
            work.close()
            raise MachineDied
        task = self.spawn(work, name)
        try:
            await asyncio.wait([task, self._ended], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            raise
        if self.has_ended or task.cancelled():
            task.cancel()
            # its result is not needed any more
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            raise MachineDied
        return task.result()

    def kill(self) -> None:
        """Simulate kill -9. From now on, the machine's actions have no external effects."""
        self._observations.add_trace(self.link.now(), self.name, "killed")
        self._observations.deaths[self.name] = self._observations.next_mark()
        self.link.die()
        self._mark_ended()
        self._discard_tasks()

    async def close(self) -> None:
        """Shut the machine down gracefully, as the app does."""
        self._observations.add_trace(self.link.now(), self.name, "closes")
        self._observations.closes[self.name] = self._observations.next_mark()
        await asyncio.wait([self.spawn(self._close(), "close")])

    def _mark_ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _discard_tasks(self) -> None:
        """Cancel the tasks that have started. Tasks that have not started remain blocked because the link is dead."""
        for task in self.tasks:
            coroutine = task.get_coro()
            has_begun = asyncio.iscoroutine(coroutine) and getcoroutinestate(coroutine) != CORO_CREATED
            if has_begun and task is not asyncio.current_task():
                task.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._vault.register(self._store)
                self.link.failure_rate = self._failure_rate  # a process that can't open its store does not start
                async with anyio.create_task_group() as tasks:
                    await tasks.start(self._router.run)
                    self.is_ready.set()
        except Exception as error:
            self._observations.add_violation(f"the router of {self.name} failed: {error!r}")

    async def _close(self) -> None:
        with anyio.move_on_after(CLOSE_SECONDS) as scope:
            await self._router.close()
        if scope.cancelled_caught:
            self._observations.add_trace(self.link.now(), self.name, "did not close in time")
        await self._services.quarantine.close()
        await self._store.close()
        self._mark_ended()
        self._scope.cancel()
        # The rest behaves like a process that is gone.
        self.link.die()
        self._observations.deaths.setdefault(self.name, self._observations.next_mark())
        self._observations.add_trace(self.link.now(), self.name, "closed")
        self._discard_tasks()
