"""Retries: only for transient errors, ended by a stop, and never for a stream that Hark closed itself."""

import asyncio
import time

import pytest

from hark.engine.turn.retry import RETRIES_PER_TURN, RetryBudget
from hark.protocol.events import Notice, ReplyRestarted
from hark.protocol.messages import AssistantMessage
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import ProviderError, TransientProviderError
from hark.providers.scripted import Fail, Hang, ScriptedProvider
from tests.engine.engine_fixture import make_services, run_session
from tests.waiting import at_most

LOST = Fail(TransientProviderError("connection lost"))


async def test_a_transient_failure_is_retried_and_reported() -> None:
    provider = ScriptedProvider([[LOST], ["good"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
    notices = [event.text for event in user.recorder.of_kind(Notice) if event.code == "retry"]
    assert len(notices) == 1
    assert "connection lost" in notices[0]
    assert provider.requests[0] == provider.requests[1]


async def test_text_shown_before_a_failure_is_discarded_and_the_transcript_has_the_reply_once() -> None:
    provider = ScriptedProvider([["half a ", LOST], ["whole"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("whole")
        replies = [message for message in user.transcript if isinstance(message, AssistantMessage)]
    assert [event.step for event in user.recorder.of_kind(ReplyRestarted)] == [1]
    assert replies == [AssistantMessage("whole")]


async def test_a_permanent_failure_is_not_retried() -> None:
    provider = ScriptedProvider([[Fail(ProviderError("bad key", "bad_key"))], ["never"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, Failed)
    assert len(provider.requests) == 1
    assert user.recorder.of_kind(Notice) == []


async def test_a_stream_closed_by_a_stop_is_never_retried_or_reported_as_reconnecting() -> None:
    hang = Hang()
    provider = ScriptedProvider([["par", hang], ["never"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        await user.proxy.idle()
    assert len(provider.requests) == 1
    assert user.recorder.of_kind(Notice) == []
    assert user.recorder.outcomes == [Interrupted("user")]


async def test_a_stop_before_the_first_byte_closes_the_stream_before_the_turn_settles() -> None:
    hang = Hang()
    async with run_session(make_services(ScriptedProvider([[hang]]))) as user:
        await user.say("go")
        await hang.reached.wait()
        settled = await user.stop()
        assert hang.closed.is_set()
    assert settled is not None
    assert settled.timings.settle < 1000 * at_most(0.1)


async def test_a_silent_provider_gets_one_request_and_no_reconnecting_notice() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], ["never"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await hang.reached.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await user.proxy.idle()
        assert user.recorder.of_kind(Notice) == []
        assert len(provider.requests) == 1


async def test_a_stop_during_a_retry_pause_ends_the_pause_and_keeps_the_shown_text() -> None:
    provider = ScriptedProvider([["half", Fail(TransientProviderError("busy", retry_after=60.0))], ["never"]])
    async with run_session(make_services(provider)) as user:
        await user.say("go")
        await user.recorder.wait_for(Notice)
        start = time.perf_counter()
        await user.stop()
        seconds = time.perf_counter() - start
        assert AssistantMessage("half", is_partial=True) in user.transcript
    assert seconds < at_most(0.5)
    assert len(provider.requests) == 1


def test_retry_backoff_doubles_honours_retry_after_and_stops_when_the_budget_is_spent() -> None:
    budget = RetryBudget(lambda: 1.0)
    error = TransientProviderError("x")
    pauses = [budget.next_pause(error) for _ in range(RETRIES_PER_TURN)]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert budget.next_pause(error) is None
    assert RetryBudget(lambda: 0.0).next_pause(error) == 0.25
    assert RetryBudget(lambda: 0.0).next_pause(TransientProviderError("x", retry_after=7.0)) == 7.0


def test_a_success_resets_the_pause_but_not_the_retry_budget() -> None:
    budget = RetryBudget(lambda: 1.0)
    for _ in range(RETRIES_PER_TURN):
        assert budget.next_pause(TransientProviderError("x")) == 0.5
        budget.record_success()
    assert budget.next_pause(TransientProviderError("x")) is None
