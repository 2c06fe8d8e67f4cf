"""A system simulated from one seed: machines, users and faults, then a quiet phase in which all work can finish."""

import asyncio
import itertools
from contextlib import suppress
from random import Random
from typing import Any
from unittest import mock

from hark.app import background_work as background_work_module
from hark.engine.session import ownership as ownership_module
from hark.engine.session.router import HEARTBEAT_SECONDS
from hark.protocol.commands import Delivery
from hark.protocol.names import background_session_name
from tests.simulation.loop import LoopStuck, VirtualLoop
from tests.simulation.machine import Machine, register_task
from tests.simulation.model import QuietPhase
from tests.simulation.network_link import NetworkLink
from tests.simulation.observations import Observations
from tests.simulation.pending_work import (
    find_open_turn,
    find_pending_messages,
    find_runnable_work,
    find_running_work,
)
from tests.simulation.plan import Plan, make_plan
from tests.simulation.promises.promises import check
from tests.simulation.storage import LEASE_SECONDS, MemoryState, SqlState
from tests.simulation.users import Screen, SimulatedUser

SESSION = "s"
QUIET_SECONDS = 60.0
LAST_ACTS_SECONDS = 20.0
ADOPTION_SECONDS = LEASE_SECONDS + 2 * HEARTBEAT_SECONDS  # the longest time until a live machine finds pending work
WATCH_SECONDS = 0.2
FOLLOW_SECONDS = 0.1  # a follower polls less often than in production, because each poll costs real time


class Simulation:
    """One simulated run according to a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.vault = SqlState() if plan.is_sql else MemoryState()
        self.observations = Observations(SESSION, self.vault)
        self.quiet = QuietPhase()
        self.machines: list[Machine] = []
        self.screens: dict[str, Screen] = {}
        self._links: dict[str, NetworkLink] = {}
        self._machine_numbers = itertools.count(1)
        self._delays = Random(f"{plan.seed} delays")
        self._model = Random(f"{plan.seed} model")
        self._faults = Random(f"{plan.seed} faults")
        self._visitor: Machine | None = None
        self.users = [
            SimulatedUser(
                f"u{number}",
                self.observations,
                Random(f"{plan.seed} u{number}"),
                plan.pause_seconds,
                lambda: self.machines,
            )
            for number in range(1, plan.users + 1)
        ]

    async def run(self) -> None:
        """Run the simulation with faults, let all remaining work finish, and check the guarantees."""
        for _ in range(self.plan.machines):
            self._start_machine()
        if self.plan.has_visitor:
            self._start_visitor()
        await self._wait_until_ready()
        user_tasks = [asyncio.create_task(person.run(self.plan.actions_per_user)) for person in self.users]
        faults = asyncio.create_task(self._inject_faults())
        if self.plan.has_reflection:
            self.machines[0].reflect(background_session_name(SESSION, "1"))
        await asyncio.wait([*user_tasks, faults])
        if self.plan.has_last_stop:
            self.users[0].stop("")
        await asyncio.sleep(self.plan.idle_seconds)
        await self._finish()
        check(self.observations, self._links, self.plan.rules)

    # Machines.

    def _start_machine(self) -> Machine:
        plan = self.plan
        link = NetworkLink(f"p{next(self._machine_numbers)}", self._delays, plan.tempo, self._is_alive)
        link.failure_rate = 0.0 if self.quiet.is_on else plan.failure_rate
        link.wake_loss_rate = plan.wake_loss_rate
        self._links[link.owner] = link
        self.observations.add_trace(link.now(), link.owner, "boots")
        lapses = Random(f"{plan.seed} {link.owner} lapses") if plan.has_lapse else None
        background = Random(f"{plan.seed} {link.owner} background") if plan.has_background_work else None
        machine = Machine(
            self.observations,
            self.vault,
            link,
            plan.rules,
            self._model,
            self.quiet,
            lapses=lapses,
            background=background,
        )
        self.machines.append(machine)
        if plan.has_readers or len(self.machines) == 1:
            machine.spawn(self._open_screen(machine), "watch")
        return machine

    def _start_visitor(self) -> None:
        """Start a machine that adopts no work, like a terminal. No user sends it anything."""
        random = Random(f"{self.plan.seed} visitor")
        link = NetworkLink("visitor", random, self.plan.tempo, self._is_alive)
        self._visitor = Machine(
            self.observations, self.vault, link, self.plan.rules, random, self.quiet, adopts_work=False
        )
        self._visitor.spawn(self._watch_visitor(self._visitor), "watch")

    async def _watch_visitor(self, visitor: Machine) -> None:
        while not visitor.open_sessions:  # noqa: ASYNC110 the router has no event for it
            await asyncio.sleep(WATCH_SECONDS)
        self.observations.add_violation(f"adoption: {visitor.name} adopts no work, but opened {visitor.open_sessions}")

    async def _open_screen(self, machine: Machine) -> None:
        await machine.is_ready.wait()
        self.screens[machine.name] = Screen(machine, self.observations, lambda name: self._on_question(machine, name))

    def _on_question(self, machine: Machine, question: str) -> None:
        if self.quiet.is_on or self._faults.random() < 0.6:
            person = self._faults.choice(self.users)
            seconds = self._faults.random() * 0.5
            asyncio.get_running_loop().call_later(seconds, person.answer, machine, question)

    async def _wait_until_ready(self) -> None:
        while not any(machine.is_ready.is_set() for machine in self.machines):  # noqa: ASYNC110 any of them
            await asyncio.sleep(0.01)

    def _is_alive(self, owner: str) -> bool:
        link = self._links.get(owner)
        return not self.plan.detects_death or link is None or not link.is_dead

    # Faults.

    async def _inject_faults(self) -> None:
        random = self._faults
        for fault in self.plan.faults:
            await asyncio.sleep(random.random() * self.plan.pause_seconds * self.plan.actions_per_user + 1e-6)
            live_machines = [machine for machine in self.machines if not machine.has_ended]
            machine = random.choice(live_machines)
            match fault:
                case "kill":
                    machine.kill()
                case "close":
                    await machine.close()
                case _:
                    seconds = LEASE_SECONDS + random.random() * 4
                    self.observations.add_trace(machine.link.now(), machine.name, "pauses for", round(seconds, 3))
                    machine.link.pause(seconds)
                    await asyncio.sleep(seconds + random.random())
                    continue
            self.machines.remove(machine)
            await asyncio.sleep(random.choice([1e-6, 0.05, random.random() * 2]))
            self._start_machine()

    # The end.

    async def _finish(self) -> None:
        """Stop injecting faults, send a message that releases held messages, and wait until all work has finished."""
        self.quiet.is_on = True
        for link in self._links.values():
            link.failure_rate = 0.0
        self.observations.add_trace(self.machines[0].link.now(), "world", "quiet")
        await self._wait_until_ready()
        await self._check_idle_machines()
        self.users[0].send(Delivery(self.plan.quiet_delivery))
        await self._wait_until_settled()
        actions = [act for person in self.users for act in person.actions]
        _, pending = await asyncio.wait(actions, timeout=LAST_ACTS_SECONDS)
        for act in sorted(pending, key=hash):
            self.observations.add_violation(f"liveness: {act.get_name()} never got an answer")
        await self._wait_until_settled()

    async def _wait_until_settled(self) -> None:
        """Wait until no turn is open and no message is pending."""
        loop = asyncio.get_running_loop()
        end = loop.time() + QUIET_SECONDS
        for round_number in itertools.count(1):
            await asyncio.sleep(0.5)
            is_working = bool(find_running_work(self.observations)) or bool(self._runnable_work())
            if (
                not find_open_turn(self.observations)
                and not find_pending_messages(self.observations)
                and not is_working
            ):
                return
            if loop.time() > end:
                self.observations.add_violation(
                    f"liveness: {self._unfinished_work()} after {QUIET_SECONDS} quiet seconds"
                )
                return
            if round_number % 10 == 0:
                self._unblock()

    async def _check_idle_machines(self) -> None:
        """Check that live machines find all runnable work. A message from a user would hide work that they lost."""
        loop = asyncio.get_running_loop()
        quiet_since, length = loop.time(), -1
        while loop.time() - quiet_since < ADOPTION_SECONDS:
            if len(self.observations.records) != length:
                quiet_since, length = loop.time(), len(self.observations.records)
            if not self._runnable_work():
                return
            await asyncio.sleep(0.5)
        self.observations.add_violation(f"liveness: all machines are idle, but {self._runnable_work()}")

    def _runnable_work(self) -> str:
        live = [machine.name for machine in self.machines if not machine.has_ended]
        return find_runnable_work(self.observations, self.plan.rules.limits.wake_ups, live)

    def _unblock(self) -> None:
        """Stop a turn that is waiting for an answer, or release held messages."""
        person = self.users[0]
        if find_open_turn(self.observations):
            person.stop("", self.machines[0])
        else:
            person.send(Delivery.QUEUE)

    def _unfinished_work(self) -> str:
        pending = sorted(find_pending_messages(self.observations)) or "none"
        work = self._runnable_work() or sorted(find_running_work(self.observations)) or "none"
        return f"open turn: {find_open_turn(self.observations) or 'none'}, pending messages: {pending}, work: {work}"


def run_seed(seed: int) -> Observations:
    """Run one seed. Return the observations, including the violations and the trace."""
    loop = VirtualLoop(register_task)
    unhandled_errors: list[str] = []
    loop.set_exception_handler(lambda _, context: unhandled_errors.extend(_describe_error(context)))
    asyncio.set_event_loop(loop)
    simulation = Simulation(make_plan(seed))
    try:
        names = (f"w{number}" for number in itertools.count(1))
        with (
            mock.patch.object(ownership_module, "FOLLOW_SECONDS", FOLLOW_SECONDS),
            mock.patch.object(background_work_module, "token_hex", side_effect=names),
        ):
            loop.run_until_complete(simulation.run())
        for sentence in unhandled_errors:
            simulation.observations.add_violation(f"an unhandled error: {sentence}")
    except LoopStuck as stuck:
        simulation.observations.add_violation(str(stuck))
    finally:
        _discard_tasks(loop)
        simulation.vault.close()
        asyncio.set_event_loop(None)
    return simulation.observations


def _describe_error(context: dict[str, Any]) -> list[str]:
    if "exception" not in context:  # a task of a dead machine that will never wake
        return []
    task = context.get("future")
    name = task.get_name() if isinstance(task, asyncio.Task) else "a future"
    return [f"{context.get('message')}: {context['exception']!r} in {name}"]


def _discard_tasks(loop: VirtualLoop) -> None:
    """Cancel the remaining tasks without reporting errors."""
    loop.set_exception_handler(lambda _loop, _context: None)
    for _ in range(3):
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_later(0.5, loop.stop)
        with suppress(LoopStuck):
            loop.run_forever()
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
