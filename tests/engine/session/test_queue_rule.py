"""A steer that its turn did not take runs before all queued messages, whatever ended the turn."""

import asyncio

import pytest

from hark.protocol.commands import Delivery, Say
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.records import Queued, QueueHeld, TurnEnded, TurnStarted
from hark.protocol.rules import AfterStop, Rules
from hark.protocol.store import SessionSummary
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.engine_fixture import GatedStore, make_services, run_session
from tests.waiting import until

TURN = "demo.t1"


class LastReply(Hang):
    """A scripted reply that ends when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.end = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.end.wait()


async def test_each_of_100_steers_at_the_end_of_a_turn_runs_before_the_queue() -> None:
    replies = [LastReply() for _ in range(100)]
    script = [part for reply in replies for part in ([reply], ["steer"], ["queued"])]
    provider = ScriptedProvider(script)
    async with run_session(make_services(provider)) as user:
        for number, reply in enumerate(replies):
            await user.say("go", Delivery.QUEUE, f"go{number}")
            await reply.reached.wait()
            await user.say("later", Delivery.QUEUE, f"q{number}")
            receipt = await user.say("use tabs", Delivery.STEER, f"s{number}")
            assert (receipt.state, receipt.position) == ("steering", 1)
            assert [item.id for item in await user.proxy.queue()] == [f"s{number}", f"q{number}"]
            reply.end.set()
            assert await user.proxy.idle() == Completed("queued")
    last = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert last == [name for number in range(100) for name in (f"go{number}", f"s{number}", f"q{number}")]


async def test_100_unread_steers_start_one_turn_in_their_order_before_the_queue() -> None:
    reply = LastReply()
    provider = ScriptedProvider([[reply], ["steers"], ["queued"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await reply.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        for number in range(100):
            await user.say("more", Delivery.STEER, f"s{number}")
        reply.end.set()
        await user.proxy.idle()
    names = [message.id for message in provider.requests[1].messages if isinstance(message, UserMessage)]
    assert names[1:] == [f"s{number}" for number in range(100)]


async def test_a_steer_in_flight_when_its_turn_ends_runs_before_the_queue() -> None:
    store, reply = GatedStore(), LastReply()
    provider = ScriptedProvider([[reply], ["steer"], ["queued"]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("go", message_id="go")
        await reply.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        store.inbox.gate.shut()
        steer = asyncio.create_task(user.say("use tabs", Delivery.STEER, "s"))
        await store.inbox.gate.reached.wait()
        reply.end.set()
        await user.recorder.wait_for_turns(1)
        store.inbox.gate.open()
        await steer
        await user.proxy.idle()
    names = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "s", "q"]


async def test_a_steer_runs_before_the_queue_when_the_end_of_its_turn_is_not_durable_yet() -> None:
    store, reply = GatedStore(), LastReply()
    provider = ScriptedProvider([[reply], ["steer"], ["queued"], ["new"]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("go", message_id="go")
        await reply.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        store.journal.block_from(TurnEnded)
        reply.end.set()
        await store.journal.gate.reached.wait()
        queued = asyncio.create_task(user.say("then this", Delivery.QUEUE, "n"))
        steer = asyncio.create_task(user.say("use tabs", Delivery.STEER, "s"))
        await until(lambda: len(user.proxy.state.queue) == 3)
        store.journal.gate.open()
        await asyncio.gather(queued, steer)
        await user.proxy.idle()
    names = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "s", "q", "n"]


@pytest.mark.parametrize("turn", ["", TURN])
async def test_a_stop_holds_the_queue_when_the_end_of_the_turn_is_not_durable_yet(turn: str) -> None:
    store, reply = GatedStore(), LastReply()
    provider = ScriptedProvider([[reply]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("go", message_id="go")
        await reply.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        store.journal.block_from(TurnEnded)
        reply.end.set()
        await store.journal.gate.reached.wait()
        stop = asyncio.create_task(user.stop(turn))
        await until(lambda: user.proxy.state.is_held)
        store.journal.gate.open()
        settled = await stop
        assert settled is not None
        assert settled.outcome == await user.proxy.idle() == Completed("")
        assert [(item.id, item.state) for item in await user.proxy.queue()] == [("q", "held")]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("after_stop", [AfterStop.HOLD, AfterStop.RUN])
async def test_an_unread_steer_runs_before_the_queue_after_a_stop(after_stop: AfterStop) -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["steer"], ["queued"], ["new"]])
    async with run_session(make_services(provider, rules=Rules(after_stop))) as user:
        await user.say("go", message_id="go")
        await hang.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        await user.say("use tabs", Delivery.STEER, "s")
        await user.stop()
        await user.say("on", Delivery.QUEUE, "n")
        await user.proxy.idle()
    names = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "s", "q", "n"]


async def test_a_held_steer_keeps_its_order_before_a_later_interrupting_message() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["both"], ["queued"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go", message_id="go")
        await hang.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        await user.say("use tabs", Delivery.STEER, "s")
        await user.stop()
        await user.say("now", Delivery.INTERRUPT, "i")
        await user.proxy.idle()
    names = [message.id for message in provider.requests[1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "s", "i"]


async def test_a_steer_after_an_interrupting_message_starts_the_same_turn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["both"], ["queued"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go", message_id="go")
        await hang.reached.wait()
        await user.say("later", Delivery.QUEUE, "q")
        await asyncio.gather(user.say("now", Delivery.INTERRUPT, "i"), user.say("tabs", Delivery.STEER, "s"))
        await user.proxy.idle()
    names = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "i", "s", "q"]


@pytest.mark.parametrize("is_in_journal", [True, False])
async def test_an_unread_steer_runs_before_the_queue_after_a_crash(is_in_journal: bool) -> None:
    store = GatedStore(owner="dead")
    lease = await store.leases.acquire("demo")
    assert lease is not None
    start = TurnStarted(turn=TURN, messages=(UserMessage("go", "go"),), inbox=1)
    later = Queued(message=UserMessage("q", "later"), delivery=Delivery.QUEUE, turn=TURN, inbox=2)
    steer = Queued(message=UserMessage("s", "tabs"), delivery=Delivery.STEER, turn=TURN, is_first=True, inbox=3)
    await store.inbox.put("demo", Say("go", "go"))
    await store.inbox.put("demo", Say("q", "later", Delivery.QUEUE))
    await store.inbox.put("demo", Say("s", "tabs", Delivery.STEER))
    records = [start, later, steer] if is_in_journal else [start, later]
    await store.journal.append(lease, 0, records, SessionSummary(is_open=True, cursor=len(records)))
    await store.leases.release(lease)
    provider = ScriptedProvider([["steer"], ["queued"]])
    async with run_session(make_services(provider, store), adopts_work=True) as user:
        await user.proxy.idle()
    names = [message.id for message in provider.requests[-1].messages if isinstance(message, UserMessage)]
    assert names == ["go", "s", "q"]


async def test_a_journal_with_a_steer_behind_the_queue_still_opens() -> None:
    store = GatedStore(owner="old")
    lease = await store.leases.acquire("demo")
    assert lease is not None
    start = TurnStarted(turn=TURN, messages=(UserMessage("go", "go"),))
    later = Queued(message=UserMessage("q", "later"), delivery=Delivery.QUEUE, turn=TURN)
    steer = Queued(message=UserMessage("s", "tabs"), delivery=Delivery.STEER, turn=TURN)
    await store.journal.append(lease, 0, [start, later, steer, QueueHeld()], SessionSummary(is_open=True))
    await store.leases.release(lease)
    provider = ScriptedProvider([["queued"], ["steer"], ["new"]])
    async with run_session(make_services(provider, store)) as user:
        assert [item.id for item in await user.proxy.queue()] == ["q", "s"]
        await user.say("on", Delivery.QUEUE, "n")
        await user.proxy.idle()
        assert await user.proxy.queue() == []
