"""Each call gets one accurate result, whatever its tool does, and none can block the turn."""

import asyncio
import time

import pytest

from hark.protocol.events import CallEnd, CallOutput, Notice, QuestionAsked
from hark.protocol.messages import CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.protocol.records import CallStarted, Quarantined
from hark.protocol.tool import CallContext, NoUserToAsk, Question, ToolOutput, ToolSpec
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.engine_fixture import (
    FakeTool,
    GatedStore,
    HangingTool,
    UncancellableTool,
    call_chunks,
    make_services,
    quick_tool,
    run_session,
)
from tests.waiting import at_most


async def test_a_stop_records_an_accurate_result_for_finished_running_and_uncancellable_calls() -> None:
    finished, hanging, uncancellable = (
        quick_tool("done", "the result"),
        HangingTool("runs"),
        UncancellableTool("resists"),
    )
    provider = ScriptedProvider([call_chunks("done", "runs", "resists"), ["next"]])
    async with run_session(make_services(provider, tools=[finished, hanging, uncancellable])) as user:
        await user.say("go")
        await asyncio.gather(hanging.started.wait(), uncancellable.started.wait(), user.recorder.wait_for(CallEnd))
        start = time.perf_counter()
        settled = await user.stop()
        seconds = time.perf_counter() - start
        results = user.call_results
        await user.say("on")
        assert await user.proxy.idle() == Completed("next")
        uncancellable.freed.set()
    assert settled is not None
    assert settled.outcome == Interrupted("user", ("resists",))
    assert seconds < at_most(1.0)
    assert results["c1"] == CallResult("c1", "done", "the result", Effect.COMPLETED)
    assert (results["c2"].effect, results["c2"].is_error) == (Effect.CANCELLED, True)
    assert results["c3"].effect == Effect.UNKNOWN
    assert results["c3"].text.startswith("half")
    assert [message for message in provider.requests[1].messages if isinstance(message, CallResult)] == [
        results["c1"],
        results["c2"],
        results["c3"],
    ]


async def test_a_result_in_the_same_tick_as_the_stop_wins_over_the_cancel() -> None:
    started, finish = asyncio.Event(), asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        await finish.wait()
        return ToolOutput("paid")

    tool = FakeTool("pay", work)
    provider = ScriptedProvider([call_chunks("pay"), ["next"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        await started.wait()
        finish.set()
        await asyncio.sleep(0)  # the tool returns, but its result is not read yet
        await user.stop()
        assert user.call_results["c1"] == CallResult("c1", "pay", "paid", Effect.COMPLETED)
    assert tool.runs == 1


async def test_the_result_of_a_tool_that_cleans_up_after_the_cancel_is_kept() -> None:
    started = asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return ToolOutput("rolled back", effect=Effect.CANCELLED)
        raise AssertionError

    async with run_session(make_services(ScriptedProvider([call_chunks("x")]), tools=[FakeTool("x", work)])) as user:
        await user.say("go")
        await started.wait()
        settled = await user.stop()
        assert user.call_results["c1"] == CallResult("c1", "x", "rolled back", Effect.CANCELLED)
    assert settled is not None
    assert settled.outcome == Interrupted("user")


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (call_chunks("nothing"), "no tool named 'nothing'"),
        (call_chunks("strict", arguments="{}"), "path"),
        (call_chunks("strict", arguments='{"path": 3}'), "path"),
        (call_chunks("strict", arguments='{"path": '), "incomplete"),
        (call_chunks("strict", arguments="[1]"), "not a JSON object"),
        (call_chunks("strict", arguments='{"path":' * 100_000), "incomplete"),
        (call_chunks("strict", arguments='{"path": "\ud800"}'), "not a JSON object"),
    ],
    ids=["unknown tool", "missing argument", "wrong type", "bad JSON", "not an object", "too deep", "lone surrogate"],
)
async def test_a_call_that_cannot_run_is_refused_with_a_reason_and_the_turn_continues(
    chunks: list[CallChunk], expected: str
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = quick_tool("strict")
    tool._spec = ToolSpec("strict", "strict.", schema)  # pyright: ignore[reportPrivateUsage]
    provider = ScriptedProvider([chunks, ["sorry"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("sorry")
        result = user.call_results["c1"]
    assert tool.runs == 0
    assert expected in result.text
    assert (result.effect, result.is_error) == (Effect.NOT_STARTED, True)


class OwnBaseException(BaseException):
    """An exception that `except Exception` does not catch."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        SystemExit(3),
        TimeoutError("late"),
        OwnBaseException("odd"),
        BaseExceptionGroup("group", [OwnBaseException("odd")]),
        StopAsyncIteration("odd"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_tool_that_raises_fails_only_its_own_call(error: BaseException) -> None:
    async def work(context: CallContext) -> ToolOutput:
        raise error

    provider = ScriptedProvider([call_chunks("bad", "look"), ["so be it"]])
    async with run_session(make_services(provider, tools=[FakeTool("bad", work), quick_tool()])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("so be it")
        results = user.call_results
    assert type(error).__name__ in results["c1"].text
    assert (results["c1"].effect, results["c1"].is_error) == (Effect.UNKNOWN, True)
    assert results["c2"].text == "seen"


async def test_a_tool_that_cancels_itself_is_recorded_as_cancelled_and_the_turn_continues() -> None:
    async def work(context: CallContext) -> ToolOutput:
        raise asyncio.CancelledError

    provider = ScriptedProvider([call_chunks("x"), ["fine"]])
    async with run_session(make_services(provider, tools=[FakeTool("x", work)])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("fine")
        assert user.call_results["c1"].effect == Effect.CANCELLED


async def test_an_interrupting_message_is_answered_while_an_abandoned_tool_still_runs() -> None:
    stubborn = UncancellableTool()
    provider = ScriptedProvider([call_chunks("deaf"), ["redirected"]])
    async with run_session(make_services(provider, tools=[stubborn])) as user:
        await user.say("go")
        await stubborn.started.wait()
        await user.say("this instead")
        assert await user.proxy.idle() == Completed("redirected")
        stubborn.freed.set()
        await stubborn.ended.wait()
        await user.recorder.wait_for(Notice)
    texts = [message.text for message in provider.requests[1].messages if isinstance(message, UserMessage)]
    assert texts == ["go", "this instead"]
    assert len(provider.requests) == 2
    assert user.recorder.outcomes == [Interrupted("new message", ("deaf",)), Completed("redirected")]


async def test_a_late_result_is_quarantined_and_reported_but_not_in_the_transcript() -> None:
    stubborn, store = UncancellableTool(), GatedStore()
    provider = ScriptedProvider([call_chunks("deaf"), ["next"], ["third"]])
    async with run_session(make_services(provider, store, [stubborn])) as user:
        await user.say("go")
        await stubborn.started.wait()
        await user.stop()
        await user.say("on")
        await user.proxy.idle()
        stubborn.freed.set()
        notice = await user.recorder.wait_for(Notice)
        await user.say("more")
        await user.proxy.idle()
        records = await store.journal.read("demo")
    assert notice.code == "late_result"
    assert "late" in notice.text
    assert [record.text for record in records if isinstance(record, Quarantined)] == ["late"]
    for request in provider.requests:
        assert "late" not in [getattr(message, "text", "") for message in request.messages]
    assert "never" not in [event.text for event in user.recorder.of_kind(CallOutput)]


async def test_an_abandoned_tool_cannot_ask_the_user() -> None:
    asked: list[str] = []
    started, freed, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                continue
        try:
            asked.append(await context.ask(Question("still there?")))
        except NoUserToAsk:
            asked.append("no user")
        ended.set()
        return ToolOutput("")

    async with run_session(make_services(ScriptedProvider([call_chunks("x")]), tools=[FakeTool("x", work)])) as user:
        await user.say("go")
        await started.wait()
        await user.stop()
        freed.set()
        async with asyncio.timeout(at_most(1)):
            await ended.wait()
    assert asked == ["no user"]
    assert user.recorder.of_kind(QuestionAsked) == []


async def test_a_tool_that_never_returns_does_not_block_the_close() -> None:
    stubborn = UncancellableTool()
    start = time.perf_counter()
    async with run_session(make_services(ScriptedProvider([call_chunks("deaf")]), tools=[stubborn])) as user:
        await user.say("go")
        await stubborn.started.wait()
    assert time.perf_counter() - start < at_most(1.0)
    assert not stubborn.ended.is_set()


async def test_the_grace_period_of_a_tool_is_limited_by_settle_seconds() -> None:
    stubborn = UncancellableTool(grace_seconds=30.0)
    async with run_session(make_services(ScriptedProvider([call_chunks("deaf")]), tools=[stubborn])) as user:
        await user.say("go")
        await stubborn.started.wait()
        settled = await user.stop()
        stubborn.freed.set()
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(1)


async def test_ten_megabytes_of_output_are_truncated_in_the_middle_with_a_marker() -> None:
    tool = quick_tool("big", "a" * 5_000_000 + "b" * 5_000_000)
    provider = ScriptedProvider([call_chunks("big"), ["ok"]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        text = user.call_results["c1"].text
    assert len(text) < 101_000
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "9,900,000 characters omitted" in text


async def test_lone_surrogates_in_a_result_are_replaced() -> None:
    provider = ScriptedProvider([call_chunks("odd"), ["ok"]])
    async with run_session(make_services(provider, tools=[quick_tool("odd", "a\ud800b")])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        assert user.call_results["c1"].text == "a?b"


@pytest.mark.parametrize("is_stubborn", [False, True], ids=["cancelled", "abandoned"])
async def test_lone_surrogates_in_the_output_of_an_interrupted_call_are_replaced(is_stubborn: bool) -> None:
    started, freed = asyncio.Event(), asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        context.output("a\udfffb")
        started.set()
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                if not is_stubborn:
                    raise
        return ToolOutput("")

    async with run_session(make_services(ScriptedProvider([call_chunks("x")]), tools=[FakeTool("x", work)])) as user:
        await user.say("go")
        await started.wait()
        await user.stop()
        assert "a?b" in user.call_results["c1"].text
        freed.set()
        assert [event.text for event in user.recorder.of_kind(CallOutput)] == ["a?b"]


async def test_a_call_is_not_started_when_interrupted_before_its_start_record_is_durable() -> None:
    tool, store = HangingTool(), GatedStore()
    provider = ScriptedProvider([call_chunks("wait"), ["next"]])
    async with run_session(make_services(provider, store, [tool])) as user:
        store.journal.block_from(CallStarted)
        await user.say("go")
        await store.journal.gate.reached.wait()
        stopping = asyncio.create_task(user.stop())
        await asyncio.sleep(0)
        store.journal.gate.open()
        settled = await stopping
        assert user.call_results["c1"].effect == Effect.NOT_STARTED
    assert settled is not None
    assert tool.runs == 0


async def test_a_call_id_that_was_used_before_is_replaced() -> None:
    provider = ScriptedProvider([call_chunks("look"), call_chunks("look"), ["ok"]])
    async with run_session(make_services(provider, tools=[quick_tool()])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
        assert len(user.call_results) == 2


async def test_no_tool_starts_after_a_stop_at_the_end_of_the_reply() -> None:
    tool, hang = HangingTool(), Hang()
    provider = ScriptedProvider([[*call_chunks("wait"), hang]])
    async with run_session(make_services(provider, tools=[tool])) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        assert user.call_results == {}
    assert tool.runs == 0
