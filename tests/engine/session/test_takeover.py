"""An owner whose lease expired during a turn: its readers get every event once, whichever process owns the session."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from hark.engine.session.lease_renewal import LeaseRenewal
from hark.engine.session.router import SessionRouter
from hark.engine.turn.routes import Route, Routes
from hark.protocol.commands import Delivery
from hark.protocol.events import MessageAccepted, ReceiptChanged, TurnEnd, TurnStart
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted, Outcome
from hark.providers.scripted import Hang, ScriptedProvider, ScriptedReply
from hark.store.memory import LEASE_SECONDS, MemoryStore, SharedMemory
from tests.engine.engine_fixture import (
    NO_HEARTBEAT_SECONDS,
    EventRecorder,
    SessionUser,
    TestClock,
    make_services,
    run_session,
)
from tests.waiting import at_most, until

CRASH = Interrupted("crash")


class AdjustableClock(TestClock):
    """A test clock that tests can advance."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def now(self) -> float:
        return super().now() + self._ahead

    def expire_leases(self) -> None:
        """Advance the clock so that every lease expires unless it is renewed afterwards."""
        self._ahead += LEASE_SECONDS + 1


@dataclass(frozen=True, slots=True)
class SessionProcess:
    """A simulated process that opened the session. All processes share one clock."""

    user: SessionUser
    store: MemoryStore
    clock: AdjustableClock

    async def renew_expired_lease(self) -> None:
        """Expire all leases, then renew this process's lease."""
        self.clock.expire_leases()
        await self.store.leases.renew()

    @property
    def turn_events(self) -> list[tuple[str, Outcome | None]]:
        """The turn starts and ends that the reader received, as (turn, outcome). A start has outcome None."""
        events: list[tuple[str, Outcome | None]] = []
        for event in self.user.recorder.events:
            if isinstance(event, TurnStart | TurnEnd):
                outcome = event.outcome if isinstance(event, TurnEnd) else None
                events.append(((event.turn or "").removeprefix("demo."), outcome))
        return events

    def check_events(self) -> None:
        """Check that the events arrived in order and without duplicates."""
        numbers = [event.seq for event in self.user.recorder.events]
        assert numbers == sorted(set(numbers))
        assert len(self.turn_events) == len(set(map(repr, self.turn_events)))
        accepted = [event.id for event in self.user.recorder.of_kind(MessageAccepted)]
        assert len(accepted) == len(set(accepted))
        receipts = [event.receipt for event in self.user.recorder.of_kind(ReceiptChanged)]
        started = [receipt.id for receipt in receipts if receipt.state == "started"]
        assert len(started) == len(set(started)) > 0


@asynccontextmanager
async def run_process(
    memory: SharedMemory, clock: AdjustableClock, name: str, *script: ScriptedReply
) -> AsyncGenerator[SessionProcess]:
    store = MemoryStore(memory, name, clock)
    router = SessionRouter(
        make_services(ScriptedProvider(script), store), adopts_work=False, heartbeat_seconds=NO_HEARTBEAT_SECONDS
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        proxy = router.proxy_for("demo")
        recorder = EventRecorder(proxy)
        tasks.start_soon(recorder.record)
        await proxy.wait_until_loaded()
        yield SessionProcess(SessionUser(proxy, recorder), store, clock)
        await router.close()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def run_takeover(
    owner: list[ScriptedReply], new_owner: list[ScriptedReply], hang: Hang
) -> AsyncGenerator[tuple[SessionProcess, SessionProcess]]:
    """Yield an owner whose turn t1 hangs, and a process that took its session over without the owner noticing."""
    memory, clock = SharedMemory(), AdjustableClock()
    async with run_process(memory, clock, "a", *owner) as a:
        await a.user.say("go", message_id="a1")
        await hang.reached.wait()
        clock.expire_leases()
        async with run_process(memory, clock, "b", *new_owner) as b:
            await b.user.recorder.wait_until(lambda: b.user.proxy.state.turn is None)
            async with asyncio.timeout(at_most(1.5)):
                yield a, b


async def test_readers_of_a_fenced_owner_get_the_end_of_its_turn_and_the_new_owners_turns() -> None:
    hang = Hang()
    async with run_takeover([["par", hang]], [["two"], ["three"]], hang) as (a, b):
        await b.user.say("second", message_id="b1")
        await b.user.say("third", Delivery.QUEUE, message_id="b2")
        await a.user.recorder.wait_for_turns(3)
        await hang.closed.wait()
    t2, t3 = ("t2", Completed("two")), ("t3", Completed("three"))
    assert a.turn_events == [("t1", None), ("t1", CRASH), ("t2", None), t2, ("t3", None), t3]
    a.check_events()


async def test_a_fenced_owner_notices_the_takeover_even_if_its_turn_is_silent() -> None:
    hang = Hang()
    async with run_takeover([[hang]], [], hang) as (a, _):
        await hang.closed.wait()
        await a.user.recorder.wait_for_turns(1)
        assert await a.user.proxy.idle() == CRASH
    assert a.turn_events == [("t1", None), ("t1", CRASH)]


async def test_an_owner_whose_lease_lapsed_calls_no_model_before_it_verifies_its_ownership() -> None:
    """The owner was suspended, renews its lease at last, and misses the wake-up of the process that took over."""
    memory, clock, provider = SharedMemory(), AdjustableClock(), ScriptedProvider([["never requested"]])
    limiter = anyio.CapacityLimiter(1)  # of the route: the turn waits here when the process is suspended
    services = make_services(provider, MemoryStore(memory, "a", clock))
    services = replace(
        services,
        clock=clock,
        routes=Routes([Route("main", provider, limiter=limiter)], clock),
        lease_renewal=LeaseRenewal(services.store.leases, clock),
    )
    async with run_session(services, heartbeat_seconds=NO_HEARTBEAT_SECONDS) as a:
        async with limiter:
            await a.say("go")
            await until(lambda: limiter.statistics().tasks_waiting == 1)
            clock.expire_leases()
            memory.wakes.pop("a")
            async with run_process(memory, clock, "b") as b:
                await b.user.recorder.wait_until(lambda: b.user.proxy.state.turn is None)
            await services.lease_renewal.renew()
            assert services.lease_renewal.is_fresh
        await a.recorder.wait_for_turns(1)
    assert provider.requests == []


async def test_an_idle_owner_whose_lease_lapsed_notices_the_takeover() -> None:
    """The owner was suspended. Another process owns the session when it resumes, and no wake-up arrives."""
    memory, clock, hang = SharedMemory(), AdjustableClock(), Hang()
    services = make_services(ScriptedProvider([]), MemoryStore(memory, "a", clock))
    services = replace(services, clock=clock, lease_renewal=LeaseRenewal(services.store.leases, clock))
    async with run_session(services, heartbeat_seconds=0.5) as a:
        await a.proxy.wait_until_loaded()
        memory.wakes.pop("a")
        clock.expire_leases()
        async with run_process(memory, clock, "b", [hang]) as b:
            async with asyncio.timeout(at_most(3)):
                await b.user.say("go")
                await hang.reached.wait()
                await until(lambda: a.proxy.state.turn is not None)
                settled = await a.stop()
    assert settled is not None
    assert settled.outcome == Interrupted("user")


async def test_an_owner_that_regains_its_session_publishes_every_event_once() -> None:
    first, second = Hang(), Hang()
    async with run_takeover([["par", first], ["three"], ["four"]], [["half", second]], first) as (a, b):
        await b.user.say("second", message_id="b1")
        await second.reached.wait()
        await a.user.recorder.wait_until(lambda: ("t2", None) in a.turn_events)
        await a.renew_expired_lease()
        await a.user.recorder.wait_for_turns(2)
        await a.user.say("third", message_id="a2")
        await b.user.recorder.wait_for_turns(3)
        await b.user.say("fourth", message_id="b2")
        await a.user.recorder.wait_for_turns(4)
        await b.user.recorder.wait_for_turns(4)
        texts = [message.text for message in a.user.transcript if isinstance(message, UserMessage)]
    t3, t4 = ("t3", Completed("three")), ("t4", Completed("four"))
    later_events = [("t2", None), ("t2", CRASH), ("t3", None), t3, ("t4", None), t4]
    assert a.turn_events == [("t1", None), ("t1", CRASH), *later_events]
    assert b.turn_events == [("t1", CRASH), *later_events]
    assert texts == ["go", "second", "third", "fourth"]
    a.check_events()
    b.check_events()


async def test_a_session_that_changes_owner_repeatedly_publishes_every_event_once_to_both_readers() -> None:
    hangs = [Hang() for _ in range(4)]
    async with run_takeover([[hangs[0]], [hangs[2]]], [[hangs[1]], [hangs[3]]], hangs[0]) as (a, b):
        for number, (process, other) in enumerate([(b, a), (a, b), (b, a)], 1):
            await process.user.say("again", message_id=f"x{number}")
            await hangs[number].reached.wait()
            await other.renew_expired_lease()
            await other.user.recorder.wait_for_turns(number + 1)
        await a.user.say("end it", message_id="last")
        await a.user.recorder.wait_until(lambda: ("t5", None) in a.turn_events)
        await b.user.recorder.wait_until(lambda: ("t5", None) in b.turn_events)
    turns = [(f"t{number}", outcome) for number in range(2, 5) for outcome in (None, CRASH)]
    assert a.turn_events[:8] == [("t1", None), ("t1", CRASH), *turns]
    assert b.turn_events[:7] == [("t1", CRASH), *turns]
    a.check_events()
    b.check_events()


async def test_a_message_sent_to_a_fenced_owner_is_run_by_the_new_owner() -> None:
    hang = Hang()
    async with run_takeover([[hang]], [["two"]], hang) as (a, b):
        receipt = await a.user.say("second", message_id="a2")
        assert await a.user.proxy.idle() == Completed("two")
        assert receipt.state == "started"
        assert receipt.turn == "demo.t2"
        await b.user.recorder.wait_for_turns(2)
    assert a.turn_events == [("t1", None), ("t1", CRASH), ("t2", None), ("t2", Completed("two"))]


async def test_a_stop_returns_and_readers_get_the_end_event_when_the_owner_was_fenced() -> None:
    hang = Hang()
    async with run_takeover([[hang]], [], hang) as (a, _):
        await a.user.say("later", Delivery.QUEUE, message_id="a2")
        assert await a.user.stop(turn="demo.t1") is None
        await hang.closed.wait()
        await a.user.recorder.wait_until(lambda: ("t1", CRASH) in a.turn_events)


async def test_waiting_for_idle_at_a_fenced_owner_returns_the_turns_outcome() -> None:
    hang = Hang()
    async with run_takeover([[hang]], [["two"]], hang) as (a, b):
        waiting = asyncio.create_task(a.user.proxy.idle())
        await asyncio.sleep(0)
        await b.user.say("second", message_id="b1")
        assert await waiting in (CRASH, Completed("two"))
        await a.user.recorder.wait_for_turns(2)
        assert await a.user.proxy.idle() == Completed("two")
        assert await a.user.stop() is None
