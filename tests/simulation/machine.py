"""A simulated machine: one process of the real engine that can be killed, paused, closed, and talked to."""

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from inspect import CORO_CREATED, getcoroutinestate
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import anyio

from hark.command_safety.analysis import ShellAnalyzer
from hark.engine.services import Current, EngineServices, Terms
from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.proxy import SessionProxy
from hark.engine.session.router import Router
from hark.engine.turn.quarantine import Quarantine
from hark.engine.turn.routes import Route, Routes
from hark.engine.turn.spending import Spending
from hark.protocol.rules import Rules
from tests.engine.null_services import GrantsInMemory, NoSnapshots
from tests.simulation.model import Model, Quiet
from tests.simulation.network_link import Link
from tests.simulation.observations import Ledger
from tests.simulation.storage import Vault
from tests.simulation.tools import SimulatedTools

T = TypeVar("T")
CLOSE_SECONDS = 5.0
MACHINE: ContextVar["Machine | None"] = ContextVar("machine", default=None)


class MachineDied(Exception):
    """Whoever waited for an answer of this machine gets none."""


def own(task: "asyncio.Task[Any]") -> None:
    """Give a new task to the machine in whose context it was made."""
    machine = MACHINE.get()
    if machine is not None:
        machine.tasks.append(task)


class Machine:
    """Lives until `kill` or `close`. What it started dies with it; what it committed stays."""

    def __init__(self, ledger: Ledger, vault: Vault, link: Link, rules: Rules, random: Random, quiet: Quiet) -> None:
        self.name = link.owner
        self.link = link
        self.tasks: list[asyncio.Task[Any]] = []
        self.is_ready = asyncio.Event()
        self._failing = link.failing
        link.failing = 0.0
        self._ledger = ledger
        self._vault = vault
        self._store = vault.open(link, lambda: ledger.catch_up(link.now(), link.owner))
        self._bench = EngineServices(
            store=self._store,
            routes=Routes([Route("main", Model(ledger, link, random, quiet))], link),
            current=Current(Terms(rules, SimulatedTools(ledger, link, quiet), lambda: "You are simulated.")),
            clock=link,
            quarantine=Quarantine(),
            spending=Spending(self._store.journal, link),
            tenure=LeaseRenewal(self._store.leases, link),
            workspace=Path("/simulated"),
            jitter=random.random,
            analyzer=ShellAnalyzer(Path("/home/person")),
            grants=GrantsInMemory(),
            snapshots=NoSnapshots(),
        )
        self._router = Router(self._bench, sweeps=True)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scope = anyio.CancelScope()
        self._context = copy_context()
        self._context.run(MACHINE.set, self)
        self.spawn(self._run(), "router")

    @property
    def is_over(self) -> bool:
        """True once nobody can talk to it any more."""
        return self._ended.done()

    @property
    def door(self) -> SessionProxy:
        """The session's door on this machine."""
        return self._context.copy().run(self._router.door, self._ledger.session)

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """Run something on this machine."""
        return asyncio.get_running_loop().create_task(work, name=f"{self.name} {name}", context=self._context.copy())

    async def call(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Have the machine do something for a person.

        Raises:
            MachineDied: It died or was closed before it answered.
        """
        if self.is_over:
            work.close()
            raise MachineDied
        task = self.spawn(work, name)
        try:
            await asyncio.wait([task, self._ended], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            raise
        if self.is_over or task.cancelled():
            task.cancel()
            task.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody hears it any more
            raise MachineDied
        return task.result()

    def kill(self) -> None:
        """kill -9: from this moment on nothing of it reaches anything outside."""
        self._ledger.note(self.link.now(), self.name, "killed")
        self._ledger.deaths[self.name] = self._ledger.mark()
        self.link.die()
        self._end()
        self._discard_tasks()

    async def close(self) -> None:
        """Shut down in an orderly way, as the app does it."""
        self._ledger.note(self.link.now(), self.name, "closes")
        self._ledger.closes[self.name] = self._ledger.mark()
        await asyncio.wait([self.spawn(self._close(), "close")])

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _discard_tasks(self) -> None:
        """Cancel what has begun; what has not will find that nothing answers it any more."""
        for task in self.tasks:
            coroutine = task.get_coro()
            has_begun = asyncio.iscoroutine(coroutine) and getcoroutinestate(coroutine) != CORO_CREATED
            if has_begun and task is not asyncio.current_task():
                task.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._vault.enter(self._store)
                self.link.failing = self._failing  # a process that can't open its store does not start
                async with anyio.create_task_group() as tasks:
                    await tasks.start(self._router.run)
                    self.is_ready.set()
        except Exception as error:
            self._ledger.violate(f"the router of {self.name} broke down: {error!r}")

    async def _close(self) -> None:
        with anyio.move_on_after(CLOSE_SECONDS) as scope:
            await self._router.close()
        if scope.cancelled_caught:
            self._ledger.note(self.link.now(), self.name, "did not close in time")
        await self._bench.quarantine.close()
        await self._store.close()
        self._end()
        self._scope.cancel()
        # What is left of it is a process that is gone.
        self.link.die()
        self._ledger.deaths.setdefault(self.name, self._ledger.mark())
        self._ledger.note(self.link.now(), self.name, "closed")
        self._discard_tasks()
