"""Two processes at one session: one owns it, the other hands over, and either may go."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from hark.engine.session.router import Router
from hark.protocol.commands import Answer, Delivery, Edit, Move, Withdraw
from hark.protocol.events import QuestionAsked
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import Provider
from hark.protocol.receipts import Refusal
from hark.protocol.store import StoreError
from hark.protocol.tool import CallContext, Question, Tool, ToolOutput
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.memory import SharedMemory
from tests.engine.engine_fixture import (
    NO_HEARTBEAT,
    FakeTool,
    GatedStore,
    Person,
    Screen,
    asks_for,
    make_bench,
    running,
)
from tests.waiting import at_most

UNUSED = ScriptedProvider([])


@dataclass(frozen=True, slots=True)
class Process:
    """A process that can die as by kill -9, but for its lease, which it gives up."""

    person: Person
    scope: anyio.CancelScope

    def die(self) -> None:
        self.scope.cancel()


@asynccontextmanager
async def process(memory: SharedMemory, name: str, provider: Provider, *tools: Tool) -> AsyncGenerator[Process]:
    bench = make_bench(provider, GatedStore(memory, name), tools)
    router = Router(bench, sweeps=False, heartbeat_seconds=NO_HEARTBEAT)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        door = router.door("demo")
        screen = Screen(door)
        tasks.start_soon(screen.watch)
        await door.known()
        yield Process(Person(door, screen), tasks.cancel_scope)
        await router.close()
        tasks.cancel_scope.cancel()


async def test_a_message_at_the_guest_runs_at_the_owner_and_the_guest_gets_its_receipt() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"], ["two"]])
    async with process(memory, "a", provider) as owner, process(memory, "b", UNUSED) as guest:
        await owner.person.say("first", name="o1")
        await owner.person.door.idle()
        receipt = await guest.person.say("second", name="g1")
        assert await guest.person.door.idle() == Completed("two")
        await guest.person.screen.ended(1)
    assert receipt.state == "started"
    assert UNUSED.requests == []
    assert guest.person.screen.outcomes[-1] == Completed("two")


async def test_the_first_message_of_an_empty_session_gets_its_receipt_at_the_guest() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"]])
    async with process(memory, "a", provider), process(memory, "b", UNUSED) as guest:
        async with asyncio.timeout(at_most(2)):
            receipt = await guest.person.say("hello")
            assert await guest.person.door.idle() == Completed("one")
    assert receipt.state == "started"


async def test_a_message_that_the_owner_takes_before_the_guest_has_read_its_journal_gets_its_receipt() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"], ["two"]])
    async with process(memory, "a", provider) as owner:
        await owner.person.say("first", name="o1")
        await owner.person.door.idle()
        store = GatedStore(memory, "b")
        store.journal.read_gate.shut()
        async with running(make_bench(UNUSED, store), heartbeat_seconds=NO_HEARTBEAT) as guest:
            saying = asyncio.create_task(guest.say("second", name="g1"))
            await owner.person.screen.ended(2)
            store.journal.read_gate.open()
            async with asyncio.timeout(at_most(2)):
                assert (await saying).state == "started"


async def test_a_stop_from_the_guest_settles_the_owners_turn() -> None:
    memory, hang = SharedMemory(), Hang()
    async with process(memory, "a", ScriptedProvider([["par", hang]])) as owner, process(memory, "b", UNUSED) as guest:
        receipt = await owner.person.say("go")
        await hang.reached.wait()
        settled = await guest.person.stop()
        assert settled is not None
        assert settled.turn == receipt.turn
        assert settled.outcome == Interrupted("user")
        assert hang.closed.is_set()
        assert AssistantMessage("par", is_partial=True) in owner.person.transcript


async def test_what_was_shown_counts_when_the_stop_comes_from_the_guest() -> None:
    memory, hang = SharedMemory(), Hang()
    provider = ScriptedProvider([["seen unseen", hang]])
    async with process(memory, "a", provider) as owner, process(memory, "b", UNUSED) as guest:
        await owner.person.say("go")
        await hang.reached.wait()
        await guest.person.stop(shown=4)
        assert AssistantMessage("seen", is_partial=True) in owner.person.transcript


async def test_a_stop_from_the_guest_with_nothing_running_is_none_and_spoils_nothing() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"], ["two"]])
    async with process(memory, "a", provider) as owner, process(memory, "b", UNUSED) as guest:
        await owner.person.say("first")
        await owner.person.door.idle()
        assert await guest.person.stop() is None
        await owner.person.say("second")
        assert await owner.person.door.idle() == Completed("two")


async def test_the_queue_is_edited_moved_and_withdrawn_from_the_guest() -> None:
    memory, hang = SharedMemory(), Hang()
    provider = ScriptedProvider([[hang], ["b"], ["a"]])
    async with process(memory, "a", provider) as owner, process(memory, "b", UNUSED) as guest:
        await owner.person.say("go")
        await hang.reached.wait()
        for name in ("qa", "qb", "qc"):
            await guest.person.say(name, Delivery.QUEUE, name)
        assert await guest.person.door.change(Edit("e1", "qa", "edited")) is None
        assert await guest.person.door.change(Move("e2", "qb", 1)) is None
        assert await guest.person.door.change(Withdraw("e3", "qc")) is None
        refusal = await guest.person.door.change(Edit("e4", "qc", "too late"))
        assert [item.text for item in await guest.person.door.queue()] == ["qb", "edited"]
        assert [item.text for item in await owner.person.door.queue()] == ["qb", "edited"]
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_waiting"


async def test_an_answer_from_the_guest_reaches_the_owners_question() -> None:
    async def work(context: CallContext) -> ToolOutput:
        return ToolOutput(await context.ask(Question("sure?")))

    memory, provider = SharedMemory(), ScriptedProvider([asks_for("ask"), ["good"]])
    async with process(memory, "a", provider, FakeTool("ask", work)) as owner, process(memory, "b", UNUSED) as guest:
        await owner.person.say("go")
        asked = await owner.person.screen.shows(QuestionAsked)
        assert await guest.person.door.answer(Answer("a1", asked.question, "quite")) is None
        assert await owner.person.door.idle() == Completed("good")
        late = await guest.person.door.answer(Answer("a2", asked.question, "again"))
        assert owner.person.results["c1"].text == "quite"
    assert late is not None
    assert late.code == "not_asked"


async def test_when_the_owner_dies_the_guest_takes_over_and_nothing_is_run_again() -> None:
    memory, hang = SharedMemory(), Hang()
    second = ScriptedProvider([["after"]])
    async with anyio.create_task_group() as tasks:
        ready, dead = anyio.Event(), anyio.Event()

        async def first_owner() -> None:
            async with process(memory, "a", ScriptedProvider([["par", hang]])) as owner:
                await owner.person.say("go", name="m1")
                await hang.reached.wait()
                ready.set()
                await dead.wait()
                owner.die()

        tasks.start_soon(first_owner)
        await ready.wait()
        async with process(memory, "c", second) as guest:
            assert guest.person.door.state.turn is not None
            dead.set()
            await guest.person.screen.ended(1)
            assert guest.person.screen.outcomes == [Interrupted("crash")]
            assert (await guest.person.say("and now", name="m2")).state == "started"
            assert await guest.person.door.idle() == Completed("after")
    said = [message.id for message in second.requests[0].messages if isinstance(message, UserMessage)]
    assert said == ["m1", "m2"]
    assert len(second.requests) == 1


@pytest.mark.parametrize("wish", ["stop", "edit"])
async def test_a_wish_of_the_guest_is_answered_when_the_owner_dies_before_it_reads_it(wish: str) -> None:
    memory, hang = SharedMemory(), Hang()
    async with anyio.create_task_group() as tasks:
        ready, dead = anyio.Event(), anyio.Event()

        async def first_owner() -> None:
            store = GatedStore(memory, "a")
            router = Router(make_bench(ScriptedProvider([[hang]]), store), sweeps=False)
            async with anyio.create_task_group() as owning:
                await owning.start(router.run)
                person = Person(router.door("demo"), Screen(router.door("demo")))
                await person.say("go", name="m1")
                await person.say("later", Delivery.QUEUE, "q1")
                await hang.reached.wait()
                store.journal.gate.shut()  # it lives, but can't answer
                ready.set()
                await dead.wait()
                owning.cancel_scope.cancel()

        tasks.start_soon(first_owner)
        await ready.wait()
        async with process(memory, "b", ScriptedProvider([["after"]])) as guest:
            if wish == "stop":
                wishing = asyncio.create_task(guest.person.stop())
            else:
                wishing = asyncio.create_task(guest.person.door.change(Edit("e1", "q1", "edited")))
            await guest.person.door.queue()
            dead.set()
            async with asyncio.timeout(at_most(3)):
                assert await wishing is None
            await guest.person.screen.ended(2)
            assert guest.person.screen.outcomes == [Interrupted("crash"), Completed("after")]
            texts = [message.text for message in guest.person.transcript if isinstance(message, UserMessage)]
            assert texts == ["go", "later" if wish == "stop" else "edited"]


async def test_an_owner_that_lost_its_lease_stops_its_turn_at_once_and_writes_nothing_more() -> None:
    memory, hang = SharedMemory(), Hang()
    async with process(memory, "a", ScriptedProvider([["par", hang]])) as owner:
        await owner.person.say("go", name="m1")
        await hang.reached.wait()
        memory.expiry["a"] = 0.0
        async with process(memory, "b", ScriptedProvider([["after"]])) as thief:
            await thief.person.screen.until(lambda: thief.person.door.state.turn is None)
            count = len(memory.kept["demo"].records)
            stopped = await owner.person.stop()
            await hang.closed.wait()
            assert len(memory.kept["demo"].records) == count
            assert stopped is None
            await thief.person.say("on", name="m2")
            assert await thief.person.door.idle() == Completed("after")


async def test_a_session_whose_store_fails_says_so_and_goes_on_when_it_is_back() -> None:
    store, provider = GatedStore(), ScriptedProvider([["one"], ["two"]])
    async with running(make_bench(provider, store)) as person:
        await person.say("first")
        await person.door.idle()
        store.journal.error = StoreError("the disk is full")
        saying = asyncio.create_task(person.say("second", name="x"))
        await person.screen.until(lambda: any("disk is full" in getattr(e, "text", "") for e in person.screen.events))
        store.journal.error = None
        assert (await saying).state == "started"
        assert await person.door.idle() == Completed("two")


async def test_a_stop_at_the_guest_before_the_receipt_of_its_own_message_reaches_the_owner() -> None:
    memory, hang = SharedMemory(), Hang()
    async with process(memory, "a", ScriptedProvider([["one"], [hang]])) as owner:
        await owner.person.say("first", name="o1")
        await owner.person.door.idle()
        store = GatedStore(memory, "b")
        async with running(make_bench(UNUSED, store)) as guest:
            await guest.door.known()
            store.inbox.gate.shut()
            saying = asyncio.create_task(guest.say("second", name="g1"))
            await store.inbox.gate.reached.wait()
            stopping = asyncio.create_task(guest.stop())
            await asyncio.sleep(0)
            store.inbox.gate.open()
            assert (await saying).state == "started"
            settled = await stopping
            assert settled is not None
            assert settled.outcome == Interrupted("user")


async def test_a_session_that_is_asked_for_while_the_agent_closes_starts_nothing_and_holds_nothing_up() -> None:
    hang, store = Hang(), GatedStore()
    provider = ScriptedProvider([[hang], ["never"]])
    router = Router(make_bench(provider, store), sweeps=False)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        person = Person(router.door("demo"), Screen(router.door("demo")))
        await person.say("go")
        await hang.reached.wait()
        store.journal.gate.shut()
        closing = asyncio.create_task(router.close())
        await store.journal.gate.reached.wait()
        other = Person(router.door("other"), Screen(router.door("other")))
        async with asyncio.timeout(at_most(1)):
            assert (await other.say("hello")).state == "queued"
            store.journal.gate.open()
            await closing
        tasks.cancel_scope.cancel()
    assert len(provider.requests) == 1
    assert await store.inbox.unfinished() == ["other"]
