"""Two simulated processes share a session: one owns it and the other follows. Either may exit."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from hark.engine.session.router import SessionRouter
from hark.protocol.commands import Answer, Delivery, Edit, Move, Say, Withdraw
from hark.protocol.events import MessageAccepted, QuestionAsked, ReceiptChanged
from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import Provider
from hark.protocol.receipts import Refusal
from hark.protocol.store import StoreError
from hark.protocol.tool import CallContext, Question, Tool, ToolOutput
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.memory import SharedMemory
from tests.engine.engine_fixture import (
    NO_HEARTBEAT_SECONDS,
    EventRecorder,
    FakeTool,
    GatedStore,
    SessionUser,
    call_chunks,
    make_services,
    run_session,
)
from tests.waiting import at_most

UNUSED = ScriptedProvider([])


@dataclass(frozen=True, slots=True)
class SessionProcess:
    """A simulated process. Its `kill` acts like kill -9, except that the process releases its lease."""

    user: SessionUser
    scope: anyio.CancelScope

    def kill(self) -> None:
        self.scope.cancel()


@asynccontextmanager
async def run_process(
    memory: SharedMemory, name: str, provider: Provider, *tools: Tool
) -> AsyncGenerator[SessionProcess]:
    services = make_services(provider, GatedStore(memory, name), tools)
    router = SessionRouter(services, adopts_work=False, heartbeat_seconds=NO_HEARTBEAT_SECONDS)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        proxy = router.proxy_for("demo")
        recorder = EventRecorder(proxy)
        tasks.start_soon(recorder.record)
        await proxy.wait_until_loaded()
        yield SessionProcess(SessionUser(proxy, recorder), tasks.cancel_scope)
        await router.close()
        tasks.cancel_scope.cancel()


async def test_a_message_sent_to_the_follower_is_run_by_the_owner_and_returns_its_receipt() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"], ["two"]])
    async with run_process(memory, "a", provider) as owner, run_process(memory, "b", UNUSED) as follower:
        await owner.user.say("first", message_id="o1")
        await owner.user.proxy.idle()
        receipt = await follower.user.say("second", message_id="g1")
        assert await follower.user.proxy.idle() == Completed("two")
        await follower.user.recorder.wait_for_turns(1)
    assert receipt.state == "started"
    assert UNUSED.requests == []
    assert follower.user.recorder.outcomes[-1] == Completed("two")


async def test_the_first_message_sent_to_the_follower_of_an_empty_session_returns_its_receipt() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"]])
    async with run_process(memory, "a", provider), run_process(memory, "b", UNUSED) as follower:
        async with asyncio.timeout(at_most(2)):
            receipt = await follower.user.say("hello")
            assert await follower.user.proxy.idle() == Completed("one")
    assert receipt.state == "started"


async def test_a_message_processed_before_the_follower_has_read_the_journal_returns_its_receipt() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"], ["two"]])
    async with run_process(memory, "a", provider) as owner:
        await owner.user.say("first", message_id="o1")
        await owner.user.proxy.idle()
        store = GatedStore(memory, "b")
        store.journal.read_gate.shut()
        async with run_session(make_services(UNUSED, store), heartbeat_seconds=NO_HEARTBEAT_SECONDS) as follower:
            saying = asyncio.create_task(follower.say("second", message_id="g1"))
            await owner.user.recorder.wait_for_turns(2)
            store.journal.read_gate.open()
            async with asyncio.timeout(at_most(2)):
                assert (await saying).state == "started"


async def test_a_reader_that_subscribes_after_loading_receives_a_receipt_that_is_written_immediately() -> None:
    memory, hang = SharedMemory(), Hang()
    store = GatedStore(memory, "b")
    router = SessionRouter(make_services(UNUSED, store), adopts_work=False, heartbeat_seconds=NO_HEARTBEAT_SECONDS)
    async with (
        run_process(memory, "a", ScriptedProvider([[hang], ["two"]])) as owner,
        anyio.create_task_group() as tasks,
    ):
        await owner.user.say("first")
        await hang.reached.wait()
        await tasks.start(router.run)
        await router.proxy_for("demo").wait_until_loaded()
        events = router.proxy_for("demo").subscribe()
        store.journal.read_gate.shut()  # the owner is faster than this process
        message = Say("mine", "second", Delivery.QUEUE)
        saying = asyncio.create_task(router.proxy_for("demo").say(message))
        await owner.user.recorder.wait_until(lambda: bool(owner.user.recorder.receipt_states("mine")))
        store.journal.read_gate.open()
        assert (await saying).state == "queued"
        async with asyncio.timeout(at_most(2)):
            received = [await anext(events), await anext(events)]
        assert [type(event) for event in received] == [MessageAccepted, ReceiptChanged]
        tasks.cancel_scope.cancel()


async def test_a_stop_from_the_follower_settles_the_owners_turn() -> None:
    memory, hang = SharedMemory(), Hang()
    async with (
        run_process(memory, "a", ScriptedProvider([["par", hang]])) as owner,
        run_process(memory, "b", UNUSED) as follower,
    ):
        receipt = await owner.user.say("go")
        await hang.reached.wait()
        settled = await follower.user.stop()
        assert settled is not None
        assert settled.turn == receipt.turn
        assert settled.outcome == Interrupted("user")
        assert hang.closed.is_set()
        assert AssistantMessage("par", is_partial=True) in owner.user.transcript


async def test_a_stop_from_the_follower_keeps_only_the_text_that_was_shown() -> None:
    memory, hang = SharedMemory(), Hang()
    provider = ScriptedProvider([["seen unseen", hang]])
    async with run_process(memory, "a", provider) as owner, run_process(memory, "b", UNUSED) as follower:
        await owner.user.say("go")
        await hang.reached.wait()
        await follower.user.stop(shown=4)
        assert AssistantMessage("seen", is_partial=True) in owner.user.transcript


async def test_a_stop_from_the_follower_without_a_running_turn_returns_none_and_has_no_effect() -> None:
    memory, provider = SharedMemory(), ScriptedProvider([["one"], ["two"]])
    async with run_process(memory, "a", provider) as owner, run_process(memory, "b", UNUSED) as follower:
        await owner.user.say("first")
        await owner.user.proxy.idle()
        assert await follower.user.stop() is None
        await owner.user.say("second")
        assert await owner.user.proxy.idle() == Completed("two")


async def test_queued_messages_are_edited_moved_and_withdrawn_from_the_follower() -> None:
    memory, hang = SharedMemory(), Hang()
    provider = ScriptedProvider([[hang], ["b"], ["a"]])
    async with run_process(memory, "a", provider) as owner, run_process(memory, "b", UNUSED) as follower:
        await owner.user.say("go")
        await hang.reached.wait()
        for name in ("qa", "qb", "qc"):
            await follower.user.say(name, Delivery.QUEUE, name)
        assert await follower.user.proxy.change(Edit("e1", "qa", "edited")) is None
        assert await follower.user.proxy.change(Move("e2", "qb", 1)) is None
        assert await follower.user.proxy.change(Withdraw("e3", "qc")) is None
        refusal = await follower.user.proxy.change(Edit("e4", "qc", "too late"))
        assert [item.text for item in await follower.user.proxy.queue()] == ["qb", "edited"]
        assert [item.text for item in await owner.user.proxy.queue()] == ["qb", "edited"]
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_waiting"


async def test_an_answer_from_the_follower_reaches_the_owners_question() -> None:
    async def work(context: CallContext) -> ToolOutput:
        return ToolOutput(await context.ask(Question("sure?")))

    memory, provider = SharedMemory(), ScriptedProvider([call_chunks("ask"), ["good"]])
    async with (
        run_process(memory, "a", provider, FakeTool("ask", work)) as owner,
        run_process(memory, "b", UNUSED) as follower,
    ):
        await owner.user.say("go")
        asked = await owner.user.recorder.wait_for(QuestionAsked)
        assert await follower.user.proxy.answer(Answer("a1", asked.question, "quite")) is None
        assert await owner.user.proxy.idle() == Completed("good")
        late = await follower.user.proxy.answer(Answer("a2", asked.question, "again"))
        assert owner.user.call_results["c1"].text == "quite"
    assert late is not None
    assert late.code == "not_asked"


async def test_the_follower_takes_over_when_the_owner_dies_without_repeating_the_turn() -> None:
    memory, hang = SharedMemory(), Hang()
    second = ScriptedProvider([["after"]])
    async with anyio.create_task_group() as tasks:
        ready, dead = anyio.Event(), anyio.Event()

        async def first_owner() -> None:
            async with run_process(memory, "a", ScriptedProvider([["par", hang]])) as owner:
                await owner.user.say("go", message_id="m1")
                await hang.reached.wait()
                ready.set()
                await dead.wait()
                owner.kill()

        tasks.start_soon(first_owner)
        await ready.wait()
        async with run_process(memory, "c", second) as follower:
            assert follower.user.proxy.state.turn is not None
            dead.set()
            await follower.user.recorder.wait_for_turns(1)
            assert follower.user.recorder.outcomes == [Interrupted("crash")]
            assert (await follower.user.say("and now", message_id="m2")).state == "started"
            assert await follower.user.proxy.idle() == Completed("after")
    message_ids = [message.id for message in second.requests[0].messages if isinstance(message, UserMessage)]
    assert message_ids == ["m1", "m2"]
    assert len(second.requests) == 1


@pytest.mark.parametrize("request_kind", ["stop", "edit"])
async def test_a_request_from_the_follower_is_answered_if_the_owner_dies_before_reading_it(request_kind: str) -> None:
    memory, hang = SharedMemory(), Hang()
    async with anyio.create_task_group() as tasks:
        ready, dead = anyio.Event(), anyio.Event()

        async def first_owner() -> None:
            store = GatedStore(memory, "a")
            router = SessionRouter(make_services(ScriptedProvider([[hang]]), store), adopts_work=False)
            async with anyio.create_task_group() as owning:
                await owning.start(router.run)
                user = SessionUser(router.proxy_for("demo"), EventRecorder(router.proxy_for("demo")))
                await user.say("go", message_id="m1")
                await user.say("later", Delivery.QUEUE, "q1")
                await hang.reached.wait()
                store.journal.gate.shut()  # the owner is alive but can't answer
                ready.set()
                await dead.wait()
                owning.cancel_scope.cancel()

        tasks.start_soon(first_owner)
        await ready.wait()
        async with run_process(memory, "b", ScriptedProvider([["after"]])) as follower:
            if request_kind == "stop":
                request = asyncio.create_task(follower.user.stop())
            else:
                request = asyncio.create_task(follower.user.proxy.change(Edit("e1", "q1", "edited")))
            await follower.user.proxy.queue()
            dead.set()
            async with asyncio.timeout(at_most(3)):
                assert await request is None
            await follower.user.recorder.wait_for_turns(2)
            assert follower.user.recorder.outcomes == [Interrupted("crash"), Completed("after")]
            texts = [message.text for message in follower.user.transcript if isinstance(message, UserMessage)]
            assert texts == ["go", "later" if request_kind == "stop" else "edited"]


async def test_an_owner_that_lost_its_lease_stops_its_turn_and_writes_nothing_more() -> None:
    memory, hang = SharedMemory(), Hang()
    async with run_process(memory, "a", ScriptedProvider([["par", hang]])) as owner:
        await owner.user.say("go", message_id="m1")
        await hang.reached.wait()
        memory.expires_at["a"] = 0.0
        async with run_process(memory, "b", ScriptedProvider([["after"]])) as new_owner:
            await new_owner.user.recorder.wait_until(lambda: new_owner.user.proxy.state.turn is None)
            count = len(memory.sessions["demo"].records)
            stopped = await owner.user.stop()
            await hang.closed.wait()
            assert len(memory.sessions["demo"].records) == count
            assert stopped is None
            await new_owner.user.say("on", message_id="m2")
            assert await new_owner.user.proxy.idle() == Completed("after")


async def test_a_session_reports_a_store_failure_and_resumes_when_the_store_recovers() -> None:
    store, provider = GatedStore(), ScriptedProvider([["one"], ["two"]])
    async with run_session(make_services(provider, store)) as user:
        await user.say("first")
        await user.proxy.idle()
        store.journal.error = StoreError("the disk is full")
        saying = asyncio.create_task(user.say("second", message_id="x"))
        await user.recorder.wait_until(
            lambda: any("disk is full" in getattr(e, "text", "") for e in user.recorder.events)
        )
        store.journal.error = None
        assert (await saying).state == "started"
        assert await user.proxy.idle() == Completed("two")


async def test_a_stop_sent_to_the_follower_before_the_messages_receipt_reaches_the_owner() -> None:
    memory, hang = SharedMemory(), Hang()
    async with run_process(memory, "a", ScriptedProvider([["one"], [hang]])) as owner:
        await owner.user.say("first", message_id="o1")
        await owner.user.proxy.idle()
        store = GatedStore(memory, "b")
        async with run_session(make_services(UNUSED, store)) as follower:
            await follower.proxy.wait_until_loaded()
            store.inbox.gate.shut()
            saying = asyncio.create_task(follower.say("second", message_id="g1"))
            await store.inbox.gate.reached.wait()
            stopping = asyncio.create_task(follower.stop())
            await asyncio.sleep(0)
            store.inbox.gate.open()
            assert (await saying).state == "started"
            settled = await stopping
            assert settled is not None
            assert settled.outcome == Interrupted("user")


async def test_a_session_opened_while_the_agent_closes_starts_no_turn_and_does_not_block_the_close() -> None:
    hang, store = Hang(), GatedStore()
    provider = ScriptedProvider([[hang], ["never"]])
    router = SessionRouter(make_services(provider, store), adopts_work=False)
    async with anyio.create_task_group() as tasks:
        await tasks.start(router.run)
        user = SessionUser(router.proxy_for("demo"), EventRecorder(router.proxy_for("demo")))
        await user.say("go")
        await hang.reached.wait()
        store.journal.gate.shut()
        closing = asyncio.create_task(router.close())
        await store.journal.gate.reached.wait()
        other = SessionUser(router.proxy_for("other"), EventRecorder(router.proxy_for("other")))
        async with asyncio.timeout(at_most(1)):
            assert (await other.say("hello")).state == "queued"
            store.journal.gate.open()
            await closing
        tasks.cancel_scope.cancel()
    assert len(provider.requests) == 1
    assert await store.inbox.unfinished_sessions() == ["other"]
