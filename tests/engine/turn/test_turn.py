"""One turn: how it ends, and what stays of it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from hark.protocol.events import TurnEnd
from hark.protocol.messages import AssistantMessage, Note, Reasoning
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome, Usage
from hark.protocol.provider import (
    Chunk,
    EndChunk,
    ProviderError,
    ReasoningChunk,
    ReasoningEnd,
    Request,
    TextChunk,
    UsageChunk,
)
from hark.protocol.receipts import Settled
from hark.protocol.rules import Limits, Rules
from hark.providers.scripted import Fail, Hang, Reply, ScriptedProvider
from tests.engine.engine_fixture import HangingTool, asks_for, make_bench, quick_tool, running
from tests.waiting import at_most


async def ending(replies: list[Reply], limits: Limits | None = None) -> tuple[Outcome | None, list[object]]:
    bench = make_bench(ScriptedProvider(replies), tools=[quick_tool()], rules=Rules(limits=limits or Limits()))
    async with running(bench) as person:
        await person.say("go")
        outcome = await person.door.idle()
        return outcome, list(person.transcript)


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(steps=2), "steps"),
        (Limits(tokens=15), "tokens"),
        (Limits(reply_characters=40), "reply_characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_turn_ends_at_its_limit_and_says_which(limits: Limits, name: str) -> None:
    step = [*asks_for("look"), UsageChunk(Usage(6, 4))]
    outcome, _ = await ending([step, step, ["word " * 10], ["never"]], limits)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == name


async def test_failure_10_after_its_time_limit_a_turn_calls_no_model_and_the_next_message_is_taken() -> None:
    hang = Hang()
    provider = ScriptedProvider([["par", hang], ["next"]])
    async with running(make_bench(provider, rules=Rules(limits=Limits(seconds=1.0)))) as person:
        await person.say("go")
        outcome = await person.door.idle()
        assert hang.closed.is_set()
        assert AssistantMessage("par", is_partial=True) in person.transcript
        assert (await person.say("on")).state == "started"
        assert await person.door.idle() == Completed("next")
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "seconds"
    assert len(provider.requests) == 2


async def test_a_tool_is_cancelled_by_the_time_limit_too() -> None:
    tool = HangingTool()
    rules = Rules(limits=Limits(seconds=1.0))
    async with running(make_bench(ScriptedProvider([asks_for("wait")]), tools=[tool], rules=rules)) as person:
        await person.say("go")
        outcome = await person.door.idle()
        assert person.results["c1"].effect == "cancelled"
    assert isinstance(outcome, LimitReached)
    assert tool.cancelled.is_set()


async def test_a_lasting_failure_is_the_outcome_with_the_providers_words_and_the_text_so_far_stays() -> None:
    outcome, transcript = await ending([["some ", Fail(ProviderError("no such model", "bad_model"))]])
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.error.message) == ("bad_model", "no such model")
    assert AssistantMessage("some ", is_partial=True) in transcript
    assert isinstance(transcript[-1], Note)


async def test_a_bug_in_a_provider_fails_the_turn_and_not_the_session() -> None:
    provider = ScriptedProvider([[Fail(KeyError("oops"))], ["fine"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        outcome = await person.door.idle()
        await person.say("again")
        assert await person.door.idle() == Completed("fine")
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "internal"


@pytest.mark.parametrize(("shown", "kept"), [(None, "one two"), (3, "one"), (0, None), (-1, None), (99, "one two")])
async def test_what_the_person_had_seen_stays(shown: int | None, kept: str | None) -> None:
    hang = Hang()
    async with running(make_bench(ScriptedProvider([["one ", "two", hang]]))) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop(shown=shown)
        replies = [message for message in person.transcript if isinstance(message, AssistantMessage)]
    assert replies == ([] if kept is None else [AssistantMessage(kept, is_partial=True)])


async def test_a_cut_in_the_middle_of_thinking_leaves_no_empty_message_and_no_half_signature() -> None:
    hang = Hang()
    provider = ScriptedProvider([[ReasoningChunk("hm"), hang], ["next"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        await person.say("on")
        await person.door.idle()
    assert [message for message in provider.requests[1].messages if isinstance(message, AssistantMessage)] == []


async def test_thinking_that_was_finished_before_the_cut_keeps_its_signature_in_front_of_its_text() -> None:
    hang, thought = Hang(), Reasoning("hm", "signature")
    async with running(make_bench(ScriptedProvider([[ReasoningEnd(thought), "so", hang]]))) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        assert AssistantMessage("so", reasoning=(thought,), is_partial=True) in person.transcript


async def test_calls_whose_arguments_were_cut_leave_no_call_behind() -> None:
    hang = Hang()
    async with running(
        make_bench(ScriptedProvider([["text", *asks_for("look"), hang]]), tools=[quick_tool()])
    ) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        assert AssistantMessage("text", is_partial=True) in person.transcript
        assert person.results == {}


async def test_a_stop_in_the_tick_of_the_last_chunk_keeps_the_completed_reply() -> None:
    stops: list[asyncio.Task[Settled | None]] = []

    class StoppedAtTheEnd:
        """Has the turn stopped between its last text and its end, without waiting in between."""

        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            yield TextChunk("all of it")
            stops.append(asyncio.create_task(person.stop()))
            yield EndChunk("stop")

    async with running(make_bench(StoppedAtTheEnd())) as person:
        await person.say("go")
        outcome = await person.door.idle()
        settled = await stops[0]
        texts = [message.text for message in person.transcript if isinstance(message, AssistantMessage)]
    assert texts == ["all of it"]
    assert outcome == Completed("all of it")
    assert settled is not None
    assert settled.outcome == Completed("all of it")


async def test_the_timings_say_where_the_settling_went() -> None:
    tool = HangingTool()
    async with running(make_bench(ScriptedProvider([asks_for("wait")]), tools=[tool])) as person:
        await person.say("go")
        await tool.started.wait()
        settled = await person.stop()
        ended = await person.screen.shows(TurnEnd)
    assert settled is not None
    assert settled.timings == ended.timings
    assert settled.timings.interrupted_at is not None
    assert [(span.kind, span.name) for span in settled.timings.spans] == [("model", "main"), ("tool", "wait")]


async def test_an_endless_provider_that_never_waits_can_still_be_stopped() -> None:
    step = asks_for("look")
    provider = ScriptedProvider([step] * 100_000)
    async with running(make_bench(provider, tools=[quick_tool()], rules=Rules(limits=Limits(steps=None)))) as person:
        await person.say("go")
        async with asyncio.timeout(at_most(2)):
            settled = await person.stop()
    assert settled is not None
    assert settled.outcome == Interrupted("user")
