"""One turn: its outcomes, its limits, and the transcript after an interruption or a failure."""

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
from hark.providers.scripted import Fail, Hang, ScriptedProvider, ScriptedReply
from tests.engine.engine_fixture import HangingTool, call_chunks, make_services, quick_tool, run_session
from tests.waiting import at_most


async def run_turn(replies: list[ScriptedReply], limits: Limits | None = None) -> tuple[Outcome | None, list[object]]:
    services = make_services(ScriptedProvider(replies), tools=[quick_tool()], rules=Rules(limits=limits or Limits()))
    async with run_session(services) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        return outcome, list(user.transcript)


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(steps=2), "steps"),
        (Limits(tokens=15), "tokens"),
        (Limits(reply_characters=40), "reply_characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_turn_ends_at_its_limit_and_its_outcome_names_the_limit(limits: Limits, name: str) -> None:
    step = [*call_chunks("look"), UsageChunk(Usage(6, 4))]
    outcome, _ = await run_turn([step, step, ["word " * 10], ["never"]], limits)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == name


async def test_a_turn_at_its_time_limit_makes_no_more_model_calls_and_the_next_message_runs() -> None:
    hang = Hang()
    provider = ScriptedProvider([["par", hang], ["next"]])
    async with run_session(make_services(provider, rules=Rules(limits=Limits(seconds=1.0)))) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        assert hang.closed.is_set()
        assert AssistantMessage("par", is_partial=True) in user.transcript
        assert (await user.say("on")).state == "started"
        assert await user.proxy.idle() == Completed("next")
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "seconds"
    assert len(provider.requests) == 2


async def test_the_time_limit_cancels_a_running_tool() -> None:
    tool = HangingTool()
    rules = Rules(limits=Limits(seconds=1.0))
    async with run_session(make_services(ScriptedProvider([call_chunks("wait")]), tools=[tool], rules=rules)) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        assert user.call_results["c1"].effect == "cancelled"
    assert isinstance(outcome, LimitReached)
    assert tool.cancelled.is_set()


async def test_a_permanent_failure_is_the_outcome_and_the_partial_reply_is_kept() -> None:
    outcome, transcript = await run_turn([["some ", Fail(ProviderError("no such model", "bad_model"))]])
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.error.message) == ("bad_model", "no such model")
    assert AssistantMessage("some ", is_partial=True) in transcript
    assert isinstance(transcript[-1], Note)


async def test_a_bug_in_a_provider_fails_the_turn_but_not_the_session() -> None:
    provider = ScriptedProvider([[Fail(KeyError("oops"))], ["fine"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        await user.say("again")
        assert await user.proxy.idle() == Completed("fine")
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "internal"


@pytest.mark.parametrize(("shown", "kept"), [(None, "one two"), (3, "one"), (0, None), (-1, None), (99, "one two")])
async def test_the_text_that_the_user_had_seen_is_kept_after_a_stop(shown: int | None, kept: str | None) -> None:
    hang = Hang()
    async with run_session(make_services(ScriptedProvider([["one ", "two", hang]]))) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop(shown=shown)
        replies = [message for message in user.transcript if isinstance(message, AssistantMessage)]
    assert replies == ([] if kept is None else [AssistantMessage(kept, is_partial=True)])


async def test_an_interruption_during_reasoning_leaves_no_empty_message() -> None:
    hang = Hang()
    provider = ScriptedProvider([[ReasoningChunk("hm"), hang], ["next"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        await user.say("on")
        await user.proxy.idle()
    assert [message for message in provider.requests[1].messages if isinstance(message, AssistantMessage)] == []


async def test_reasoning_finished_before_an_interruption_keeps_its_signature_before_its_text() -> None:
    hang, thought = Hang(), Reasoning("hm", "signature")
    async with run_session(make_services(ScriptedProvider([[ReasoningEnd(thought), "so", hang]]))) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        assert AssistantMessage("so", reasoning=(thought,), is_partial=True) in user.transcript


async def test_calls_with_interrupted_arguments_are_dropped() -> None:
    hang = Hang()
    async with run_session(
        make_services(ScriptedProvider([["text", *call_chunks("look"), hang]]), tools=[quick_tool()])
    ) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        assert AssistantMessage("text", is_partial=True) in user.transcript
        assert user.call_results == {}


async def test_a_stop_in_the_same_tick_as_the_last_chunk_keeps_the_completed_reply() -> None:
    stops: list[asyncio.Task[Settled | None]] = []

    class StopAtEndProvider:
        """A fake provider that requests a stop between the last text and the end of its reply, without waiting."""

        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            yield TextChunk("all of it")
            stops.append(asyncio.create_task(user.stop()))
            yield EndChunk("stop")

    async with run_session(make_services(StopAtEndProvider())) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        settled = await stops[0]
        texts = [message.text for message in user.transcript if isinstance(message, AssistantMessage)]
    assert texts == ["all of it"]
    assert outcome == Completed("all of it")
    assert settled is not None
    assert settled.outcome == Completed("all of it")


async def test_the_timings_of_a_stopped_turn_list_its_model_and_tool_spans() -> None:
    tool = HangingTool()
    async with run_session(make_services(ScriptedProvider([call_chunks("wait")]), tools=[tool])) as user:
        await user.say("go")
        await tool.started.wait()
        settled = await user.stop()
        ended = await user.recorder.wait_for(TurnEnd)
    assert settled is not None
    assert settled.timings == ended.timings
    assert settled.timings.interrupted_at is not None
    assert [(span.kind, span.name) for span in settled.timings.spans] == [("model", "main"), ("tool", "wait")]


async def test_an_endless_provider_that_never_waits_can_be_stopped() -> None:
    step = call_chunks("look")
    provider = ScriptedProvider([step] * 100_000)
    async with run_session(
        make_services(provider, tools=[quick_tool()], rules=Rules(limits=Limits(steps=None)))
    ) as user:
        await user.say("go")
        async with asyncio.timeout(at_most(2)):
            settled = await user.stop()
    assert settled is not None
    assert settled.outcome == Interrupted("user")
