"""Asking a model again: for passing failures only, heard by a stop, and never for our own close."""

import asyncio
import time

import pytest

from hark.engine.turn.retry import RETRIES_PER_TURN, RetryBudget
from hark.protocol.events import Notice, ReplyRestarted
from hark.protocol.messages import AssistantMessage
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import ProviderError, TransientProviderError
from hark.providers.scripted import Fail, Hang, ScriptedProvider
from tests.engine.engine_fixture import make_bench, running
from tests.waiting import at_most

LOST = Fail(TransientProviderError("connection lost"))


async def test_a_passing_failure_is_tried_again_and_told() -> None:
    provider = ScriptedProvider([[LOST], ["good"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("good")
    notices = [event.text for event in person.screen.all(Notice) if event.code == "retry"]
    assert len(notices) == 1
    assert "connection lost" in notices[0]
    assert provider.requests[0] == provider.requests[1]


async def test_text_that_was_shown_before_the_failure_is_taken_back_and_is_in_the_transcript_once() -> None:
    provider = ScriptedProvider([["half a ", LOST], ["whole"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("whole")
        replies = [message for message in person.transcript if isinstance(message, AssistantMessage)]
    assert [event.step for event in person.screen.all(ReplyRestarted)] == [1]
    assert replies == [AssistantMessage("whole")]


async def test_a_lasting_failure_is_not_tried_again() -> None:
    provider = ScriptedProvider([[Fail(ProviderError("bad key", "bad_key"))], ["never"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        outcome = await person.door.idle()
    assert isinstance(outcome, Failed)
    assert len(provider.requests) == 1
    assert person.screen.all(Notice) == []


async def test_our_own_close_is_never_tried_again_and_says_nothing_of_reconnecting() -> None:
    hang = Hang()
    provider = ScriptedProvider([["par", hang], ["never"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        await person.door.idle()
    assert len(provider.requests) == 1
    assert person.screen.all(Notice) == []
    assert person.screen.outcomes == [Interrupted("user")]


async def test_failure_1_a_stop_before_the_first_byte_closes_the_stream_before_it_is_said_to_be_settled() -> None:
    hang = Hang()
    async with running(make_bench(ScriptedProvider([[hang]]))) as person:
        await person.say("go")
        await hang.reached.wait()
        settled = await person.stop()
        assert hang.closed.is_set()
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(0.1)


async def test_failure_2_a_silent_provider_is_asked_once_and_nothing_is_said_of_reconnecting() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["never"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await hang.reached.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await person.door.idle()
        assert person.screen.all(Notice) == []
        assert len(provider.requests) == 1


async def test_a_stop_in_the_pause_ends_it_at_once_and_what_was_shown_stays() -> None:
    provider = ScriptedProvider([["half", Fail(TransientProviderError("busy", retry_after=60.0))], ["never"]])
    async with running(make_bench(provider)) as person:
        await person.say("go")
        await person.screen.shows(Notice)
        began = time.perf_counter()
        await person.stop()
        seconds = time.perf_counter() - began
        assert AssistantMessage("half", is_partial=True) in person.transcript
    assert seconds < at_most(0.5)
    assert len(provider.requests) == 1


def test_the_pauses_grow_to_a_limit_heed_the_server_and_end_with_the_budget() -> None:
    budget = RetryBudget(lambda: 1.0)
    error = TransientProviderError("x")
    pauses = [budget.next_pause(error) for _ in range(RETRIES_PER_TURN)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert budget.next_pause(error) is None
    assert RetryBudget(lambda: 0.0).next_pause(error) == 0.25
    assert RetryBudget(lambda: 0.0).next_pause(TransientProviderError("x", retry_after=7.0)) == 7.0


def test_a_success_makes_the_next_pause_short_again_but_gives_no_budget_back() -> None:
    budget = RetryBudget(lambda: 1.0)
    for _ in range(RETRIES_PER_TURN):
        assert budget.next_pause(TransientProviderError("x")) == 0.5
        budget.succeeded()
    assert budget.next_pause(TransientProviderError("x")) is None
