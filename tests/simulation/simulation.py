"""A simulated world from one seed: machines, people and faults, then a quiet phase in which all comes to rest."""

import asyncio
import itertools
from contextlib import suppress
from random import Random
from typing import Any
from unittest import mock

from hark.engine.session import ownership as keeper_module
from hark.protocol.commands import Delivery, Say
from hark.protocol.records import Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from tests.simulation.loop import Stuck, VirtualLoop
from tests.simulation.machine import Machine, own
from tests.simulation.model import Quiet
from tests.simulation.network_link import Link
from tests.simulation.observations import Ledger
from tests.simulation.plan import Plan, plan_of
from tests.simulation.promises.promises import check
from tests.simulation.storage import LEASE_SECONDS, MemoryVault, SqlVault
from tests.simulation.users import Person, Screen

SESSION = "s"
QUIET_SECONDS = 60.0
LAST_ACTS_SECONDS = 20.0
FOLLOW_SECONDS = 0.1  # a guest looks less often than in earnest: each look costs real time


class World:
    """One run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.vault = SqlVault() if plan.is_sql else MemoryVault()
        self.ledger = Ledger(SESSION, self.vault)
        self.quiet = Quiet()
        self.machines: list[Machine] = []
        self.screens: dict[str, Screen] = {}
        self._links: dict[str, Link] = {}
        self._names = itertools.count(1)
        self._delays = Random(f"{plan.seed} delays")
        self._model = Random(f"{plan.seed} model")
        self._faults = Random(f"{plan.seed} faults")
        self.people = [
            Person(f"u{number}", self.ledger, Random(f"{plan.seed} u{number}"), plan.pace, lambda: self.machines)
            for number in range(1, plan.people + 1)
        ]

    async def run(self) -> None:
        """Live, with faults; then come to rest; then judge."""
        for _ in range(self.plan.machines):
            self._boot()
        await self._ready()
        lives = [asyncio.create_task(person.live(self.plan.acts)) for person in self.people]
        faults = asyncio.create_task(self._go_wrong())
        await asyncio.wait([*lives, faults])
        await asyncio.sleep(self.plan.lull)
        await self._rest()
        check(self.ledger, self._links, self.plan.rules)

    # Machines.

    def _boot(self) -> Machine:
        plan = self.plan
        link = Link(f"p{next(self._names)}", self._delays, plan.tempo, self._is_alive)
        link.failing = 0.0 if self.quiet.is_on else plan.failing
        link.loses_wakes = plan.loses_wakes
        self._links[link.owner] = link
        self.ledger.note(link.now(), link.owner, "boots")
        machine = Machine(self.ledger, self.vault, link, plan.rules, self._model, self.quiet)
        self.machines.append(machine)
        if plan.watches or len(self.machines) == 1:
            machine.spawn(self._watch(machine), "watch")
        return machine

    async def _watch(self, machine: Machine) -> None:
        await machine.is_ready.wait()
        self.screens[machine.name] = Screen(machine, self.ledger, lambda name: self._asked(machine, name))

    def _asked(self, machine: Machine, question: str) -> None:
        if self.quiet.is_on or self._faults.random() < 0.6:
            person = self._faults.choice(self.people)
            seconds = self._faults.random() * 0.5
            asyncio.get_running_loop().call_later(seconds, person.answer, machine, question)

    async def _ready(self) -> None:
        while not any(machine.is_ready.is_set() for machine in self.machines):  # noqa: ASYNC110 any of them
            await asyncio.sleep(0.01)

    def _is_alive(self, owner: str) -> bool:
        return not self.plan.tells_death or not self._links[owner].is_dead

    # Faults.

    async def _go_wrong(self) -> None:
        random = self._faults
        for fault in self.plan.faults:
            await asyncio.sleep(random.random() * self.plan.pace * self.plan.acts + 1e-6)
            alive = [machine for machine in self.machines if not machine.is_over]
            machine = random.choice(alive)
            match fault:
                case "kill":
                    machine.kill()
                case "close":
                    await machine.close()
                case _:
                    seconds = LEASE_SECONDS + random.random() * 4
                    self.ledger.note(machine.link.now(), machine.name, "pauses for", round(seconds, 3))
                    machine.link.paused_until = asyncio.get_running_loop().time() + seconds
                    await asyncio.sleep(seconds + random.random())
                    continue
            self.machines.remove(machine)
            await asyncio.sleep(random.choice([1e-6, 0.05, random.random() * 2]))
            self._boot()

    # The end.

    async def _rest(self) -> None:
        """No more faults: hung work ends, one more message releases what is held, and all comes to rest."""
        self.quiet.is_on = True
        for link in self._links.values():
            link.failing = 0.0
        self.ledger.note(self.machines[0].link.now(), "world", "quiet")
        await self._ready()
        self.people[0].say(Delivery(self.plan.quiet_delivery))
        await self._settle()
        acts = [act for person in self.people for act in person.acts]
        _, pending = await asyncio.wait(acts, timeout=LAST_ACTS_SECONDS)
        for act in sorted(pending, key=hash):
            self.ledger.violate(f"liveness: {act.get_name()} never got an answer")
        await self._settle()

    async def _settle(self) -> None:
        """Wait until no turn is open and nothing waits."""
        loop = asyncio.get_running_loop()
        end = loop.time() + QUIET_SECONDS
        for round_number in itertools.count(1):
            await asyncio.sleep(0.5)
            if not self._open_turn() and not self._left():
                return
            if loop.time() > end:
                self.ledger.violate(f"liveness: {self._unfinished()} after {QUIET_SECONDS} quiet seconds")
                return
            if round_number % 10 == 0:
                self._nudge()

    def _nudge(self) -> None:
        """A turn that waits for a person who did not hear its question is stopped; held messages are released."""
        person = self.people[0]
        if self._open_turn():
            person.stop("", self.machines[0])
        else:
            person.say(Delivery.QUEUE)

    def _unfinished(self) -> str:
        return f"turn {self._open_turn() or 'none'} is open, and {sorted(self._left()) or 'nothing'} waits"

    def _open_turn(self) -> str:
        turn = ""
        for one in self.ledger.records:
            if isinstance(one.record, TurnStarted):
                turn = one.record.turn
            elif isinstance(one.record, TurnEnded):
                turn = ""
        return turn

    def _left(self) -> set[str]:
        left = {entry.command.id for _, entry in self.ledger.entries if isinstance(entry.command, Say)}
        for one in self.ledger.records:
            match one.record:
                case TurnStarted(messages=messages) | Steered(messages=messages):
                    left.difference_update(message.id for message in messages)
                case Queued(message=message):
                    left.add(message.id)
                case Withdrawn(message=message):
                    left.discard(message)
                case _:
                    pass
        return left


def run_seed(seed: int) -> Ledger:
    """Run one seed; its ledger has the violations, the trace and the digest."""
    loop = VirtualLoop(own)
    lost: list[str] = []
    loop.set_exception_handler(lambda _, context: lost.extend(_describe(context)))
    asyncio.set_event_loop(loop)
    world = World(plan_of(seed))
    try:
        with mock.patch.object(keeper_module, "FOLLOW_SECONDS", FOLLOW_SECONDS):
            loop.run_until_complete(world.run())
        for sentence in lost:
            world.ledger.violate(f"an error that nobody handled: {sentence}")
    except Stuck as stuck:
        world.ledger.violate(str(stuck))
    finally:
        _discard(loop)
        world.vault.close()
        asyncio.set_event_loop(None)
    return world.ledger


def _describe(context: dict[str, Any]) -> list[str]:
    if "exception" not in context:  # a task of a dead machine that nobody will ever wake
        return []
    task = context.get("future")
    name = task.get_name() if isinstance(task, asyncio.Task) else "a future"
    return [f"{context.get('message')}: {context['exception']!r} in {name}"]


def _discard(loop: VirtualLoop) -> None:
    """End what is left, without a word."""
    loop.set_exception_handler(lambda _loop, _context: None)
    for _ in range(3):
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_later(0.5, loop.stop)
        with suppress(Stuck):
            loop.run_forever()
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
