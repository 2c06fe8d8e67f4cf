"""Calls: each has one honest result, whatever its tool does, and none can hold the turn."""

import asyncio
import time

import pytest

from hark.protocol.events import CallEnd, CallOutput, Notice, QuestionAsked
from hark.protocol.messages import CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import CallChunk
from hark.protocol.records import CallStarted, Quarantined
from hark.protocol.tool import CallContext, NobodyToAsk, Question, ToolOutput, ToolSpec
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.engine_fixture import (
    DeafTool,
    FakeTool,
    GatedStore,
    HangingTool,
    asks_for,
    make_bench,
    quick_tool,
    running,
)
from tests.waiting import at_most


async def test_three_parallel_calls_of_which_one_is_done_one_runs_and_one_resists_each_get_an_honest_result() -> None:
    done, runs, resists = quick_tool("done", "the result"), HangingTool("runs"), DeafTool("resists")
    provider = ScriptedProvider([asks_for("done", "runs", "resists"), ["next"]])
    async with running(make_bench(provider, tools=[done, runs, resists])) as person:
        await person.say("go")
        await asyncio.gather(runs.started.wait(), resists.started.wait(), person.screen.shows(CallEnd))
        began = time.perf_counter()
        settled = await person.stop()
        seconds = time.perf_counter() - began
        results = person.results
        await person.say("on")
        assert await person.door.idle() == Completed("next")
        resists.freed.set()
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


async def test_a_result_that_was_reached_in_the_tick_of_the_stop_wins_and_the_tool_does_not_run_twice() -> None:
    started, finish = asyncio.Event(), asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        await finish.wait()
        return ToolOutput("paid")

    tool = FakeTool("pay", work)
    provider = ScriptedProvider([asks_for("pay"), ["next"]])
    async with running(make_bench(provider, tools=[tool])) as person:
        await person.say("go")
        await started.wait()
        finish.set()
        await asyncio.sleep(0)  # the tool returns; nobody has looked at it yet
        await person.stop()
        assert person.results["c1"] == CallResult("c1", "pay", "paid", Effect.COMPLETED)
    assert tool.runs == 1


async def test_a_tool_that_tidies_up_and_returns_after_the_cancel_has_its_result_kept() -> None:
    started = asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return ToolOutput("rolled back", effect=Effect.CANCELLED)
        raise AssertionError

    async with running(make_bench(ScriptedProvider([asks_for("x")]), tools=[FakeTool("x", work)])) as person:
        await person.say("go")
        await started.wait()
        settled = await person.stop()
        assert person.results["c1"] == CallResult("c1", "x", "rolled back", Effect.CANCELLED)
    assert settled is not None
    assert settled.outcome == Interrupted("user")


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        (asks_for("nothing"), "no tool named 'nothing'"),
        (asks_for("strict", arguments="{}"), "path"),
        (asks_for("strict", arguments='{"path": 3}'), "path"),
        (asks_for("strict", arguments='{"path": '), "not a JSON object"),
        (asks_for("strict", arguments="[1]"), "not a JSON object"),
        (asks_for("strict", arguments='{"path":' * 100_000), "not a JSON object"),
        (asks_for("strict", arguments='{"path": "\ud800"}'), "not a JSON object"),
    ],
    ids=["unknown tool", "missing", "wrong type", "broken JSON", "no object", "too deep", "half a surrogate pair"],
)
async def test_a_call_that_can_not_run_is_refused_with_a_reason_and_the_turn_goes_on(
    chunks: list[CallChunk], words: str
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = quick_tool("strict")
    tool._spec = ToolSpec("strict", "strict.", schema)  # pyright: ignore[reportPrivateUsage]
    provider = ScriptedProvider([chunks, ["sorry"]])
    async with running(make_bench(provider, tools=[tool])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("sorry")
        result = person.results["c1"]
    assert tool.runs == 0
    assert words in result.text
    assert (result.effect, result.is_error) == (Effect.NOT_STARTED, True)


class OwnBaseException(BaseException):
    """What no `except Exception` catches."""


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
async def test_a_tool_that_raises_fails_its_own_call_and_nothing_else(error: BaseException) -> None:
    async def work(context: CallContext) -> ToolOutput:
        raise error

    provider = ScriptedProvider([asks_for("bad", "look"), ["so be it"]])
    async with running(make_bench(provider, tools=[FakeTool("bad", work), quick_tool()])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("so be it")
        results = person.results
    assert type(error).__name__ in results["c1"].text
    assert (results["c1"].effect, results["c1"].is_error) == (Effect.UNKNOWN, True)
    assert results["c2"].text == "seen"


async def test_a_tool_that_cancels_itself_is_cancelled_and_the_turn_goes_on() -> None:
    async def work(context: CallContext) -> ToolOutput:
        raise asyncio.CancelledError

    provider = ScriptedProvider([asks_for("x"), ["fine"]])
    async with running(make_bench(provider, tools=[FakeTool("x", work)])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("fine")
        assert person.results["c1"].effect == Effect.CANCELLED


async def test_failure_4_a_redirect_while_a_tool_resists_runs_the_next_turn_alone_and_the_old_one_never_returns() -> (
    None
):
    deaf = DeafTool()
    provider = ScriptedProvider([asks_for("deaf"), ["redirected"]])
    async with running(make_bench(provider, tools=[deaf])) as person:
        await person.say("go")
        await deaf.started.wait()
        await person.say("this instead")
        assert await person.door.idle() == Completed("redirected")
        deaf.freed.set()
        await deaf.ended.wait()
        await person.screen.shows(Notice)
    said = [message.text for message in provider.requests[1].messages if isinstance(message, UserMessage)]
    assert said == ["go", "this instead"]
    assert len(provider.requests) == 2
    assert person.screen.outcomes == [Interrupted("new message", ("deaf",)), Completed("redirected")]


async def test_failure_11_a_late_result_is_quarantined_told_and_in_no_transcript() -> None:
    deaf, store = DeafTool(), GatedStore()
    provider = ScriptedProvider([asks_for("deaf"), ["next"], ["third"]])
    async with running(make_bench(provider, store, [deaf])) as person:
        await person.say("go")
        await deaf.started.wait()
        await person.stop()
        await person.say("on")
        await person.door.idle()
        deaf.freed.set()
        notice = await person.screen.shows(Notice)
        await person.say("more")
        await person.door.idle()
        records = await store.journal.read("demo")
    assert notice.code == "late_result"
    assert "late" in notice.text
    assert [record.text for record in records if isinstance(record, Quarantined)] == ["late"]
    for request in provider.requests:
        assert "late" not in [getattr(message, "text", "") for message in request.messages]
    assert "never" not in [event.text for event in person.screen.all(CallOutput)]


async def test_an_abandoned_tool_can_ask_nobody() -> None:
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
        except NobodyToAsk:
            asked.append("nobody")
        ended.set()
        return ToolOutput("")

    async with running(make_bench(ScriptedProvider([asks_for("x")]), tools=[FakeTool("x", work)])) as person:
        await person.say("go")
        await started.wait()
        await person.stop()
        freed.set()
        async with asyncio.timeout(at_most(1)):
            await ended.wait()
    assert asked == ["nobody"]
    assert person.screen.all(QuestionAsked) == []


async def test_a_tool_that_never_returns_does_not_hold_the_close() -> None:
    deaf = DeafTool()
    began = time.perf_counter()
    async with running(make_bench(ScriptedProvider([asks_for("deaf")]), tools=[deaf])) as person:
        await person.say("go")
        await deaf.started.wait()
    assert time.perf_counter() - began < at_most(1.0)
    assert not deaf.ended.is_set()


async def test_a_tool_may_not_take_longer_to_tidy_up_than_a_settlement_may() -> None:
    deaf = DeafTool(grace=30.0)
    async with running(make_bench(ScriptedProvider([asks_for("deaf")]), tools=[deaf])) as person:
        await person.say("go")
        await deaf.started.wait()
        settled = await person.stop()
        deaf.freed.set()
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(1)


async def test_ten_megabytes_of_output_are_cut_in_the_middle_and_said_to_be() -> None:
    tool = quick_tool("big", "a" * 5_000_000 + "b" * 5_000_000)
    provider = ScriptedProvider([asks_for("big"), ["ok"]])
    async with running(make_bench(provider, tools=[tool])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("ok")
        text = person.results["c1"].text
    assert len(text) < 101_000
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "9900000 characters left out" in text


async def test_halves_of_surrogate_pairs_in_a_result_are_replaced() -> None:
    provider = ScriptedProvider([asks_for("odd"), ["ok"]])
    async with running(make_bench(provider, tools=[quick_tool("odd", "a\ud800b")])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("ok")
        assert person.results["c1"].text == "a?b"


@pytest.mark.parametrize("is_deaf", [False, True], ids=["cancelled", "abandoned"])
async def test_halves_of_surrogate_pairs_in_the_output_of_a_cut_call_are_replaced(is_deaf: bool) -> None:
    started, freed = asyncio.Event(), asyncio.Event()

    async def work(context: CallContext) -> ToolOutput:
        context.output("a\udfffb")
        started.set()
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                if not is_deaf:
                    raise
        return ToolOutput("")

    async with running(make_bench(ScriptedProvider([asks_for("x")]), tools=[FakeTool("x", work)])) as person:
        await person.say("go")
        await started.wait()
        await person.stop()
        assert "a?b" in person.results["c1"].text
        freed.set()
        assert [event.text for event in person.screen.all(CallOutput)] == ["a?b"]


async def test_a_call_that_was_cut_before_it_was_registered_as_running_has_a_result() -> None:
    tool, store = HangingTool(), GatedStore()
    provider = ScriptedProvider([asks_for("wait"), ["next"]])
    async with running(make_bench(provider, store, [tool])) as person:
        store.journal.hold(CallStarted)
        await person.say("go")
        await store.journal.gate.reached.wait()
        stopping = asyncio.create_task(person.stop())
        await asyncio.sleep(0)
        store.journal.gate.open()
        settled = await stopping
        assert person.results["c1"].effect == Effect.NOT_STARTED
    assert settled is not None
    assert tool.runs == 0


async def test_a_call_id_that_was_used_before_is_replaced() -> None:
    provider = ScriptedProvider([asks_for("look"), asks_for("look"), ["ok"]])
    async with running(make_bench(provider, tools=[quick_tool()])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("ok")
        assert len(person.results) == 2


async def test_no_tool_starts_after_a_stop_that_came_with_the_end_of_the_reply() -> None:
    tool, hang = HangingTool(), Hang()
    provider = ScriptedProvider([[*asks_for("wait"), hang]])
    async with running(make_bench(provider, tools=[tool])) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        assert person.results == {}
    assert tool.runs == 0
