"""A stop that arrives while messages are still in flight."""

import asyncio

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.receipts import ReceiptState
from hark.protocol.store import StoreError
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import GatedStore, make_services, run_session
from tests.waiting import at_most


async def test_a_stop_before_the_receipt_stops_the_message_before_any_model_call() -> None:
    store, provider = GatedStore(), ScriptedProvider([["never"]])
    async with run_session(make_services(provider, store)) as user:
        await user.proxy.wait_until_loaded()
        store.inbox.gate.shut()
        saying = asyncio.create_task(user.say("go"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.inbox.gate.open()
        receipt, settled = await saying, await stopping
        assert [type(message) for message in user.transcript][:1] == [UserMessage]
    assert receipt.state == "started"
    assert settled is not None
    assert settled.turn == receipt.turn
    assert settled.outcome == Interrupted("user")
    assert provider.requests == []


async def test_a_stop_while_the_session_loads_stops_the_turn_before_its_first_model_call() -> None:
    store, provider = GatedStore(), ScriptedProvider([["never"]])
    store.journal.read_gate.shut()
    async with run_session(make_services(provider, store)) as user:
        await store.journal.read_gate.reached.wait()
        saying = asyncio.create_task(user.say("go"))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.journal.read_gate.open()
        assert (await saying).state == "started"
        settled = await stopping
    assert settled is not None
    assert settled.outcome == Interrupted("user")
    assert provider.requests == []


async def test_a_stop_while_the_session_loads_holds_all_earlier_messages() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"], ["b"]])
    store.journal.read_gate.shut()
    async with run_session(make_services(provider, store)) as user:
        await store.journal.read_gate.reached.wait()
        says = [asyncio.create_task(user.say(text, Delivery.QUEUE)) for text in ("first", "second")]
        await asyncio.sleep(0)
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.journal.read_gate.open()
        await stopping
        receipts = [await say for say in says]
        await user.proxy.idle()
        queue = await user.proxy.queue()
    assert [receipt.state for receipt in receipts] == ["started", "held"]
    assert [item.text for item in queue] == ["second"]
    assert provider.requests == []


async def test_two_messages_sent_while_the_session_loads_start_one_turn_together() -> None:
    store, provider = GatedStore(), ScriptedProvider([["both"]])
    store.journal.read_gate.shut()
    async with run_session(make_services(provider, store)) as user:
        await store.journal.read_gate.reached.wait()
        says = [asyncio.create_task(user.say(text)) for text in ("first", "no, this")]
        await asyncio.sleep(0)
        store.journal.read_gate.open()
        receipts = [await say for say in says]
        assert await user.proxy.idle() == Completed("both")
    assert [receipt.state for receipt in receipts] == ["started", "started"]
    assert [getattr(message, "text", "") for message in provider.requests[0].messages] == ["first", "no, this"]


async def test_a_stop_on_an_in_flight_duplicate_returns_none_without_blocking() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("go", message_id="x")
        await user.proxy.idle()
        store.inbox.gate.shut()
        again = asyncio.create_task(user.say("go", message_id="x"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.inbox.gate.open()
        assert (await again).state is ReceiptState.DUPLICATE
        async with asyncio.timeout(at_most(1)):
            assert await stopping is None


async def test_a_stop_on_an_in_flight_message_that_fails_to_store_returns_none_without_blocking() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with run_session(make_services(provider, store)) as user:
        await user.proxy.wait_until_loaded()
        store.inbox.gate.shut()
        saying = asyncio.create_task(user.say("go"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.inbox.error = StoreError("the disk is full")
        store.inbox.gate.open()
        with pytest.raises(StoreError, match="full"):
            await saying
        async with asyncio.timeout(at_most(1)):
            assert await stopping is None


async def test_a_stop_also_stops_an_in_flight_message_whose_sender_was_cancelled() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with run_session(make_services(provider, store)) as user:
        await user.proxy.wait_until_loaded()
        store.inbox.gate.shut()
        saying = asyncio.create_task(user.say("go"))
        await store.inbox.gate.reached.wait()
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        saying.cancel()
        store.inbox.gate.open()
        async with asyncio.timeout(at_most(1)):
            settled = await stopping
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert await user.proxy.idle() == Interrupted("user")
    assert provider.requests == []


async def test_a_stored_message_runs_immediately_even_if_its_sender_was_cancelled() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with run_session(make_services(provider, store)) as user:
        await user.proxy.wait_until_loaded()
        store.inbox.gate.shut()
        saying = asyncio.create_task(user.say("go"))
        await store.inbox.gate.reached.wait()
        saying.cancel()
        store.inbox.gate.open()
        async with asyncio.timeout(at_most(1)):
            assert await user.proxy.idle() == Completed("a")


async def test_the_same_id_sent_twice_concurrently_runs_once() -> None:
    provider = ScriptedProvider([["a"]])
    async with run_session(make_services(provider)) as user:
        receipts = await asyncio.gather(user.say("go", message_id="x"), user.say("go", message_id="x"))
        await user.proxy.idle()
    assert sorted(receipt.state for receipt in receipts) == ["duplicate", "started"]
    assert len(provider.requests) == 1


async def test_a_message_sent_while_the_agent_closes_is_queued_for_the_next_owner() -> None:
    store, provider = GatedStore(), ScriptedProvider([["a"]])
    async with run_session(make_services(provider, store)) as user:
        await user.proxy.wait_until_loaded()
        store.inbox.gate.shut()
        saying = asyncio.create_task(user.say("go"))
        await store.inbox.gate.reached.wait()
        user.proxy.close()
        await user.recorder.closed.wait()
        store.inbox.gate.open()
        async with asyncio.timeout(at_most(1)):
            assert (await saying).state == "queued"
        async with asyncio.timeout(at_most(1)):
            assert (await user.say("and this")).state == "queued"
    assert provider.requests == []
    assert await store.inbox.unfinished_sessions() == ["demo"]
