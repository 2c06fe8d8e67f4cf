"""A stop meets messages that are still on their way in."""

import asyncio

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.receipts import ReceiptState
from hark.protocol.store import StoreError
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import GatedStore, make_bench, running
from tests.waiting import at_most


async def test_a_stop_before_the_receipt_meets_the_message_and_no_model_is_called() -> None:
    store, provider = GatedStore(), ScriptedProvider([["never"]])
    async with running(make_bench(provider, store)) as person:
        await person.door.known()
        store.inbox.gate.shut()
        saying = asyncio.create_task(person.say("go"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.inbox.gate.open()
        receipt, settled = await saying, await stopping
        assert [type(message) for message in person.transcript][:1] == [UserMessage]
    assert receipt.state == "started"
    assert settled is not None
    assert settled.turn == receipt.turn
    assert settled.outcome == Interrupted("user")
    assert provider.requests == []


async def test_failure_7_a_stop_while_the_session_loads_stops_the_turn_before_its_first_model_call() -> None:
    store, provider = GatedStore(), ScriptedProvider([["never"]])
    store.journal.read_gate.shut()
    async with running(make_bench(provider, store)) as person:
        await store.journal.read_gate.reached.wait()
        saying = asyncio.create_task(person.say("go"))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.journal.read_gate.open()
        assert (await saying).state == "started"
        settled = await stopping
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert provider.requests == []


async def test_a_stop_while_the_session_loads_holds_all_that_came_before_it() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"], ["b"]])
    store.journal.read_gate.shut()
    async with running(make_bench(provider, store)) as person:
        await store.journal.read_gate.reached.wait()
        says = [asyncio.create_task(person.say(text, Delivery.QUEUE)) for text in ("first", "second")]
        await asyncio.sleep(0)
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.journal.read_gate.open()
        await stopping
        receipts = [await say for say in says]
        await person.door.idle()
        queue = await person.door.queue()
    assert [receipt.state for receipt in receipts] == ["started", "held"]
    assert [item.text for item in queue] == ["second"]
    assert provider.requests == []


async def test_failure_8_a_message_while_the_session_loads_joins_the_first_and_both_run() -> None:
    store, provider = GatedStore(), ScriptedProvider([["both"]])
    store.journal.read_gate.shut()
    async with running(make_bench(provider, store)) as person:
        await store.journal.read_gate.reached.wait()
        says = [asyncio.create_task(person.say(text)) for text in ("first", "no, this")]
        await asyncio.sleep(0)
        store.journal.read_gate.open()
        receipts = [await say for say in says]
        assert await person.door.idle() == Completed("both")
    assert [receipt.state for receipt in receipts] == ["started", "started"]
    assert [getattr(message, "text", "") for message in provider.requests[0].messages] == ["first", "no, this"]


async def test_a_stop_that_meets_a_duplicate_on_its_way_does_not_wait_for_ever() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with running(make_bench(provider, store)) as person:
        await person.say("go", name="x")
        await person.door.idle()
        store.inbox.gate.shut()
        again = asyncio.create_task(person.say("go", name="x"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.inbox.gate.open()
        assert (await again).state is ReceiptState.DUPLICATE
        async with asyncio.timeout(at_most(1)):
            assert await stopping is None


async def test_a_stop_that_meets_a_message_which_is_not_accepted_does_not_wait_for_ever() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with running(make_bench(provider, store)) as person:
        await person.door.known()
        store.inbox.gate.shut()
        saying = asyncio.create_task(person.say("go"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.inbox.error = StoreError("the disk is full")
        store.inbox.gate.open()
        with pytest.raises(StoreError, match="full"):
            await saying
        async with asyncio.timeout(at_most(1)):
            assert await stopping is None


async def test_a_message_whose_bringer_gives_up_is_stopped_all_the_same_and_never_runs_later() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with running(make_bench(provider, store)) as person:
        await person.door.known()
        store.inbox.gate.shut()
        saying = asyncio.create_task(person.say("go"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        saying.cancel()
        store.inbox.gate.open()
        async with asyncio.timeout(at_most(1)):
            settled = await stopping
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert await person.door.idle() == Interrupted("user")
    assert provider.requests == []


async def test_a_message_whose_bringer_gives_up_runs_at_once_if_it_was_stored() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with running(make_bench(provider, store)) as person:
        await person.door.known()
        store.inbox.gate.shut()
        saying = asyncio.create_task(person.say("go"))
        await store.inbox.gate.reached.wait()
        saying.cancel()
        store.inbox.gate.open()
        async with asyncio.timeout(at_most(1)):
            assert await person.door.idle() == Completed("a")


async def test_the_same_id_said_twice_at_once_runs_once() -> None:
    provider = ScriptedProvider([["a"]])
    async with running(make_bench(provider)) as person:
        receipts = await asyncio.gather(person.say("go", name="x"), person.say("go", name="x"))
        await person.door.idle()
    assert sorted(receipt.state for receipt in receipts) == ["duplicate", "started"]
    assert len(provider.requests) == 1


async def test_a_message_that_comes_while_the_agent_closes_gets_a_receipt_and_waits_for_the_next_owner() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with running(make_bench(provider, store)) as person:
        await person.door.known()
        store.inbox.gate.shut()
        saying = asyncio.create_task(person.say("go"))
        await store.inbox.gate.reached.wait()
        person.door.close()
        await person.screen.closed.wait()
        store.inbox.gate.open()
        async with asyncio.timeout(at_most(1)):
            assert (await saying).state == "queued"
        async with asyncio.timeout(at_most(1)):
            assert (await person.say("and this")).state == "queued"
    assert provider.requests == []
    assert await store.inbox.unfinished() == ["demo"]
