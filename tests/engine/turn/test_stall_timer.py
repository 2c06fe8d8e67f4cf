"""A silent model: the user is warned first, then the connection is closed and the request retried once."""

import asyncio

import pytest

from hark.engine.turn.routes import Route
from hark.engine.turn.stall_timer import FIRST_BYTE_SECONDS, IDLE_SECONDS, REASONING_FACTOR, StallTimer, stall_limits
from hark.protocol.events import Notice, ReplyRestarted, RouteChanged
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import KeepAliveChunk
from hark.providers.scripted import Hang, Pause, ScriptStep
from tests.engine.engine_fixture import call_chunks, quick_tool, run_session
from tests.engine.route_chain import in_virtual_time, scripted_provider, services_with_routes

PLAIN = Route("plain", scripted_provider(), model="gpt-4.1")


def test_the_stall_limits_grow_with_the_context() -> None:
    assert stall_limits(PLAIN, 0) == (FIRST_BYTE_SECONDS, IDLE_SECONDS)
    assert stall_limits(PLAIN, 100_000) == (pytest.approx(FIRST_BYTE_SECONDS + 120), pytest.approx(IDLE_SECONDS + 120))


@pytest.mark.parametrize("model", ["o3", "openai/o4-mini", "gpt-5.2", "deepseek-r1", "claude-opus-4", "k2-thinking"])
def test_a_reasoning_model_has_longer_stall_limits(model: str) -> None:
    limits = (FIRST_BYTE_SECONDS * REASONING_FACTOR, IDLE_SECONDS * REASONING_FACTOR)
    assert stall_limits(Route("r", scripted_provider(), model=model), 0) == limits


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4", "llama-3", "mistral-large", "", "foo3", "proto1"])
def test_other_models_have_the_default_stall_limits(model: str) -> None:
    assert stall_limits(Route("r", scripted_provider(), model=model), 0) == (FIRST_BYTE_SECONDS, IDLE_SECONDS)


def test_a_local_server_has_no_stall_limit_and_configured_limits_always_win() -> None:
    assert stall_limits(Route("r", scripted_provider(), model="o3", is_local=True), 10**6) == (None, None)
    for is_local in (True, False):
        own = Route("r", scripted_provider(), model="o3", is_local=is_local, first_byte_seconds=5.0, idle_seconds=7.0)
        assert stall_limits(own, 10**6) == (5.0, 7.0)
    assert stall_limits(Route("r", scripted_provider(), model="x", idle_seconds=7.0), 0) == (FIRST_BYTE_SECONDS, 7.0)


@in_virtual_time
async def test_a_silent_model_causes_a_warning_then_one_retry() -> None:
    hang = Hang()
    provider = scripted_provider([hang], ["good"], ["never"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        start = asyncio.get_running_loop().time()
        await user.say("go")
        await hang.closed.wait()
        waited = asyncio.get_running_loop().time() - start
        assert await user.proxy.idle() == Completed("good")
    assert FIRST_BYTE_SECONDS <= waited < FIRST_BYTE_SECONDS + 1
    assert len(provider.requests) == 2
    notices = user.recorder.of_kind(Notice)
    assert [event.code for event in notices] == ["silence", "retry"]
    assert notices[0].at - start == pytest.approx(0.6 * FIRST_BYTE_SECONDS, abs=1)
    assert "72 s" in notices[0].text
    assert "120 s" in notices[0].text


@in_virtual_time
async def test_a_model_that_stays_silent_fails_the_turn_after_the_second_request() -> None:
    provider = scripted_provider([Hang()], [Hang()], ["never"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "stale"
    assert "main" in outcome.error.message
    assert len(provider.requests) == 2


@in_virtual_time
async def test_a_model_that_stays_silent_is_replaced_by_the_next_route_after_the_second_request() -> None:
    first, second = scripted_provider([Hang()], [Hang()]), scripted_provider(["good"])
    async with run_session(services_with_routes(Route("first", first), Route("second", second))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
    assert (len(first.requests), len(second.requests)) == (2, 1)
    assert [event.route for event in user.recorder.of_kind(RouteChanged)] == ["second"]


@in_virtual_time
async def test_each_stall_in_a_turn_is_retried_once() -> None:
    provider = scripted_provider([Hang()], [*call_chunks("look")], [Hang()], ["done"])
    async with run_session(services_with_routes(Route("main", provider), tools=[quick_tool()])) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("done")
    assert len(provider.requests) == 4


@in_virtual_time
async def test_a_stall_during_a_reply_discards_the_shown_text() -> None:
    provider = scripted_provider(["half", Hang()], ["whole"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        start = asyncio.get_running_loop().time()
        await user.say("go")
        assert await user.proxy.idle() == Completed("whole")
        assert asyncio.get_running_loop().time() - start >= IDLE_SECONDS
    assert len(user.recorder.of_kind(ReplyRestarted)) == 1


@in_virtual_time
async def test_keep_alive_chunks_keep_a_stream_open_without_a_notice() -> None:
    alive: list[ScriptStep] = [step for _ in range(50) for step in (Pause(60), KeepAliveChunk())]
    provider = scripted_provider([*alive, "at last"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("at last")
    assert len(provider.requests) == 1
    assert user.recorder.of_kind(Notice) == []


@in_virtual_time
async def test_each_stall_is_reported_once() -> None:
    provider = scripted_provider(["a", Pause(150), "b", Pause(150), "c"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("abc")
    assert [event.code for event in user.recorder.of_kind(Notice)] == ["silence", "silence"]


@in_virtual_time
async def test_a_configured_stall_limit_ends_a_wait_that_the_default_would_allow() -> None:
    hang = Hang()
    provider = scripted_provider([hang], ["good"])
    async with run_session(services_with_routes(Route("main", provider, is_local=True, first_byte_seconds=3))) as user:
        start = asyncio.get_running_loop().time()
        await user.say("go")
        await hang.closed.wait()
        assert asyncio.get_running_loop().time() - start == pytest.approx(3, abs=0.1)
        assert await user.proxy.idle() == Completed("good")


@in_virtual_time
async def test_a_local_server_may_be_silent_for_a_day() -> None:
    provider = scripted_provider([Pause(86_400), "good"])
    async with run_session(services_with_routes(Route("main", provider, is_local=True))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
    assert len(provider.requests) == 1
    assert user.recorder.of_kind(Notice) == []


@in_virtual_time
async def test_with_only_an_idle_limit_the_first_data_may_take_a_day_but_later_data_may_not() -> None:
    hang = Hang()
    provider = scripted_provider([Pause(86_400), "a", hang], ["good"])
    async with run_session(services_with_routes(Route("main", provider, is_local=True, idle_seconds=10))) as user:
        start = asyncio.get_running_loop().time()
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
        waited = asyncio.get_running_loop().time() - start
    assert 86_410 <= waited < 86_420
    assert [event.code for event in user.recorder.of_kind(Notice)] == ["silence", "retry"]


@in_virtual_time
async def test_a_stop_during_a_stall_counts_as_an_interruption_and_not_as_a_stall() -> None:
    hang = Hang()
    provider = scripted_provider([hang], ["never"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await user.say("go")
        await user.recorder.wait_for(Notice)
        await user.stop()
        assert hang.closed.is_set()
        await asyncio.sleep(1000)
    assert user.recorder.outcomes == [Interrupted("user")]
    assert len(provider.requests) == 1
    assert [event.code for event in user.recorder.of_kind(Notice)] == ["silence"]


@in_virtual_time
async def test_the_stall_timer_warns_only_about_a_long_silence() -> None:
    loop = asyncio.get_running_loop()
    warnings: list[float] = []
    timer = StallTimer((10.0, 10.0), lambda silent, _: warnings.append(silent))
    with timer:
        for _ in range(1000):
            await asyncio.sleep(1)
            timer.record_data()
        await asyncio.sleep(9)
    assert not timer.is_stale
    assert warnings == [pytest.approx(6.0)]
    assert loop.time() == pytest.approx(1009)
