"""An owner whose lease expired in mid-turn: its people hear all of it once, from whoever owns the session."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from hark.engine.session.router import Router
from hark.protocol.commands import Delivery
from hark.protocol.events import MessageAccepted, ReceiptChanged, TurnEnd, TurnStart
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted, Outcome
from hark.providers.scripted import Hang, Reply, ScriptedProvider
from hark.store.memory import LEASE_SECONDS, MemoryStore, SharedMemory
from tests.engine.engine_fixture import NO_HEARTBEAT, Person, Screen, TestClock, make_bench
from tests.waiting import at_most

CRASH = Interrupted("crash")


class Hands(TestClock):
    """A clock whose hands can be put forward."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def now(self) -> float:
        return super().now() + self._ahead

    def outlast(self) -> None:
        """Let every lease expire that is not renewed after this."""
        self._ahead += LEASE_SECONDS + 1


@dataclass(frozen=True, slots=True)
class Process:
    """A process at the session, on a clock that it shares with the others."""

    person: Person
    store: MemoryStore
    clock: Hands

    async def wake_late(self) -> None:
        """Sleep through all leases, its own too, and say that it lives again."""
        self.clock.outlast()
        await self.store.leases.renew()

    @property
    def story(self) -> list[tuple[str, Outcome | None]]:
        """The starts (None) and ends of turns, as its reader heard them."""
        story: list[tuple[str, Outcome | None]] = []
        for event in self.person.screen.events:
            if isinstance(event, TurnStart | TurnEnd):
                outcome = event.outcome if isinstance(event, TurnEnd) else None
                story.append(((event.turn or "").removeprefix("demo."), outcome))
        return story

    def check_order(self) -> None:
        """Everything was heard in order, and nothing twice."""
        numbers = [event.seq for event in self.person.screen.events]
        assert numbers == sorted(set(numbers))
        assert len(self.story) == len(set(map(repr, self.story)))
        accepted = [event.id for event in self.person.screen.all(MessageAccepted)]
        assert len(accepted) == len(set(accepted))
        receipts = [event.receipt for event in self.person.screen.all(ReceiptChanged)]
        started = [receipt.id for receipt in receipts if receipt.state == "started"]
        assert len(started) == len(set(started)) > 0


@asynccontextmanager
async def process(memory: SharedMemory, clock: Hands, name: str, *script: Reply) -> AsyncGenerator[Process]:
    store = MemoryStore(memory, name, clock)
    router = Router(make_bench(ScriptedProvider(script), store), sweeps=False, heartbeat_seconds=NO_HEARTBEAT)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        door = router.door("demo")
        screen = Screen(door)
        tasks.start_soon(screen.watch)
        await door.known()
        yield Process(Person(door, screen), store, clock)
        await router.close()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def taken_over(owner: list[Reply], taker: list[Reply], hang: Hang) -> AsyncGenerator[tuple[Process, Process]]:
    """An owner whose turn t1 hangs, and the process that has just taken its session: the owner knows nothing of it."""
    memory, clock = SharedMemory(), Hands()
    async with process(memory, clock, "a", *owner) as a:
        await a.person.say("go", name="a1")
        await hang.reached.wait()
        clock.outlast()
        async with process(memory, clock, "b", *taker) as b:
            await b.person.screen.until(lambda: b.person.door.state.turn is None)
            async with asyncio.timeout(at_most(1.5)):
                yield a, b


async def test_the_readers_of_a_fenced_owner_hear_its_turns_end_and_then_the_turns_of_the_new_owner() -> None:
    hang = Hang()
    async with taken_over([["par", hang]], [["two"], ["three"]], hang) as (a, b):
        await b.person.say("second", name="b1")
        await b.person.say("third", Delivery.QUEUE, name="b2")
        await a.person.screen.ended(3)
        await hang.closed.wait()
    t2, t3 = ("t2", Completed("two")), ("t3", Completed("three"))
    assert a.story == [("t1", None), ("t1", CRASH), ("t2", None), t2, ("t3", None), t3]
    a.check_order()


async def test_a_fenced_owner_with_nothing_to_write_and_nothing_to_read_learns_of_it_too() -> None:
    hang = Hang()
    async with taken_over([[hang]], [], hang) as (a, _):
        await hang.closed.wait()
        await a.person.screen.ended(1)
        assert await a.person.door.idle() == CRASH
    assert a.story == [("t1", None), ("t1", CRASH)]


async def test_an_owner_that_gets_its_session_back_tells_nothing_twice_and_leaves_nothing_out() -> None:
    first, second = Hang(), Hang()
    async with taken_over([["par", first], ["three"], ["four"]], [["half", second]], first) as (a, b):
        await b.person.say("second", name="b1")
        await second.reached.wait()
        await a.person.screen.until(lambda: ("t2", None) in a.story)
        await a.wake_late()
        await a.person.screen.ended(2)
        await a.person.say("third", name="a2")
        await b.person.screen.ended(3)
        await b.person.say("fourth", name="b2")
        await a.person.screen.ended(4)
        await b.person.screen.ended(4)
        texts = [message.text for message in a.person.transcript if isinstance(message, UserMessage)]
    t3, t4 = ("t3", Completed("three")), ("t4", Completed("four"))
    rest = [("t2", None), ("t2", CRASH), ("t3", None), t3, ("t4", None), t4]
    assert a.story == [("t1", None), ("t1", CRASH), *rest]
    assert b.story == [("t1", CRASH), *rest]
    assert texts == ["go", "second", "third", "fourth"]
    a.check_order()
    b.check_order()


async def test_a_session_that_goes_to_and_fro_is_told_once_to_both() -> None:
    hangs = [Hang() for _ in range(4)]
    async with taken_over([[hangs[0]], [hangs[2]]], [[hangs[1]], [hangs[3]]], hangs[0]) as (a, b):
        for number, (process, other) in enumerate([(b, a), (a, b), (b, a)], 1):
            await process.person.say("again", name=f"x{number}")
            await hangs[number].reached.wait()
            await other.wake_late()
            await other.person.screen.ended(number + 1)
        await a.person.say("end it", name="last")
        await a.person.screen.until(lambda: ("t5", None) in a.story)
        await b.person.screen.until(lambda: ("t5", None) in b.story)
    turns = [(f"t{number}", outcome) for number in range(2, 5) for outcome in (None, CRASH)]
    assert a.story[:8] == [("t1", None), ("t1", CRASH), *turns]
    assert b.story[:7] == [("t1", CRASH), *turns]
    a.check_order()
    b.check_order()


async def test_a_message_said_to_a_fenced_owner_runs_at_the_new_one() -> None:
    hang = Hang()
    async with taken_over([[hang]], [["two"]], hang) as (a, b):
        receipt = await a.person.say("second", name="a2")
        assert await a.person.door.idle() == Completed("two")
        assert receipt.state == "started"
        assert receipt.turn == "demo.t2"
        await b.person.screen.ended(2)
    assert a.story == [("t1", None), ("t1", CRASH), ("t2", None), ("t2", Completed("two"))]


async def test_a_stop_of_a_fenced_owners_turn_returns_and_its_readers_hear_the_end() -> None:
    hang = Hang()
    async with taken_over([[hang]], [], hang) as (a, _):
        await a.person.say("later", Delivery.QUEUE, name="a2")
        assert await a.person.stop(turn="demo.t1") is None
        await hang.closed.wait()
        await a.person.screen.until(lambda: ("t1", CRASH) in a.story)


async def test_whoever_waits_for_a_fenced_owners_turn_gets_its_end() -> None:
    hang = Hang()
    async with taken_over([[hang]], [["two"]], hang) as (a, b):
        waiting = asyncio.create_task(a.person.door.idle())
        await asyncio.sleep(0)
        await b.person.say("second", name="b1")
        assert await waiting in (CRASH, Completed("two"))
        await a.person.screen.ended(2)
        assert await a.person.door.idle() == Completed("two")
        assert await a.person.stop() is None
