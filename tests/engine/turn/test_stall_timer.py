"""A silent model: told first, then its connection is closed and asked for once more."""

import asyncio

import pytest

from hark.engine.turn.routes import Route
from hark.engine.turn.stall_timer import FIRST_BYTE_SECONDS, IDLE_SECONDS, REASONING_FACTOR, StallTimer, patience
from hark.protocol.events import Notice, ReplyRestarted, RouteChanged
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import AliveChunk
from hark.providers.scripted import Hang, Pause, Step
from tests.engine.engine_fixture import asks_for, quick_tool, running
from tests.engine.route_chain import chain, in_virtual_time, script

PLAIN = Route("plain", script(), model="gpt-4.1")


def test_the_limits_grow_with_the_context() -> None:
    assert patience(PLAIN, 0) == (FIRST_BYTE_SECONDS, IDLE_SECONDS)
    assert patience(PLAIN, 100_000) == (pytest.approx(FIRST_BYTE_SECONDS + 120), pytest.approx(IDLE_SECONDS + 120))


@pytest.mark.parametrize("model", ["o3", "openai/o4-mini", "gpt-5.2", "deepseek-r1", "claude-opus-4", "k2-thinking"])
def test_a_model_that_thinks_has_more_time(model: str) -> None:
    limits = (FIRST_BYTE_SECONDS * REASONING_FACTOR, IDLE_SECONDS * REASONING_FACTOR)
    assert patience(Route("r", script(), model=model), 0) == limits


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4", "llama-3", "mistral-large", "", "foo3", "proto1"])
def test_a_model_that_does_not_think_has_the_usual_time(model: str) -> None:
    assert patience(Route("r", script(), model=model), 0) == (FIRST_BYTE_SECONDS, IDLE_SECONDS)


def test_a_local_server_has_no_limit_and_a_persons_own_limit_always_wins() -> None:
    assert patience(Route("r", script(), model="o3", is_local=True), 10**6) == (None, None)
    for is_local in (True, False):
        own = Route("r", script(), model="o3", is_local=is_local, first_byte_seconds=5.0, idle_seconds=7.0)
        assert patience(own, 10**6) == (5.0, 7.0)
    assert patience(Route("r", script(), model="x", idle_seconds=7.0), 0) == (FIRST_BYTE_SECONDS, 7.0)


@in_virtual_time
async def test_a_silent_model_is_told_then_closed_and_asked_for_exactly_once_more() -> None:
    hang = Hang()
    provider = script([hang], ["good"], ["never"])
    async with running(chain(Route("main", provider))) as person:
        began = asyncio.get_running_loop().time()
        await person.say("go")
        await hang.closed.wait()
        waited = asyncio.get_running_loop().time() - began
        assert await person.door.idle() == Completed("good")
    assert FIRST_BYTE_SECONDS <= waited < FIRST_BYTE_SECONDS + 1
    assert len(provider.requests) == 2
    notices = person.screen.all(Notice)
    assert [event.code for event in notices] == ["silence", "retry"]
    assert notices[0].at - began == pytest.approx(0.6 * FIRST_BYTE_SECONDS, abs=1)
    assert "72 s" in notices[0].text
    assert "120 s" in notices[0].text


@in_virtual_time
async def test_a_model_that_stays_silent_fails_the_turn_after_the_second_request() -> None:
    provider = script([Hang()], [Hang()], ["never"])
    async with running(chain(Route("main", provider))) as person:
        await person.say("go")
        outcome = await person.door.idle()
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "stale"
    assert "main" in outcome.error.message
    assert len(provider.requests) == 2


@in_virtual_time
async def test_a_model_that_stays_silent_is_replaced_after_the_second_request() -> None:
    first, second = script([Hang()], [Hang()]), script(["good"])
    async with running(chain(Route("first", first), Route("second", second))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("good")
    assert (len(first.requests), len(second.requests)) == (2, 1)
    assert [event.route for event in person.screen.all(RouteChanged)] == ["second"]


@in_virtual_time
async def test_each_silence_of_a_turn_has_its_one_new_request() -> None:
    provider = script([Hang()], [*asks_for("look")], [Hang()], ["done"])
    async with running(chain(Route("main", provider), tools=[quick_tool()])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("done")
    assert len(provider.requests) == 4


@in_virtual_time
async def test_silence_in_the_middle_of_a_reply_takes_back_what_was_shown() -> None:
    provider = script(["half", Hang()], ["whole"])
    async with running(chain(Route("main", provider))) as person:
        began = asyncio.get_running_loop().time()
        await person.say("go")
        assert await person.door.idle() == Completed("whole")
        assert asyncio.get_running_loop().time() - began >= IDLE_SECONDS
    assert len(person.screen.all(ReplyRestarted)) == 1


@in_virtual_time
async def test_signs_of_life_without_content_keep_a_stream_open_and_nothing_is_told() -> None:
    alive: list[Step] = [step for _ in range(50) for step in (Pause(60), AliveChunk())]
    provider = script([*alive, "at last"])
    async with running(chain(Route("main", provider))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("at last")
    assert len(provider.requests) == 1
    assert person.screen.all(Notice) == []


@in_virtual_time
async def test_each_silence_is_told_once() -> None:
    provider = script(["a", Pause(150), "b", Pause(150), "c"])
    async with running(chain(Route("main", provider))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("abc")
    assert [event.code for event in person.screen.all(Notice)] == ["silence", "silence"]


@in_virtual_time
async def test_a_persons_own_limit_ends_a_wait_that_would_be_allowed() -> None:
    hang = Hang()
    provider = script([hang], ["good"])
    async with running(chain(Route("main", provider, is_local=True, first_byte_seconds=3))) as person:
        began = asyncio.get_running_loop().time()
        await person.say("go")
        await hang.closed.wait()
        assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.1)
        assert await person.door.idle() == Completed("good")


@in_virtual_time
async def test_a_local_server_may_take_all_day() -> None:
    provider = script([Pause(86_400), "good"])
    async with running(chain(Route("main", provider, is_local=True))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("good")
    assert len(provider.requests) == 1
    assert person.screen.all(Notice) == []


@in_virtual_time
async def test_with_a_limit_between_signs_alone_the_first_may_take_all_day_and_the_others_not() -> None:
    hang = Hang()
    provider = script([Pause(86_400), "a", hang], ["good"])
    async with running(chain(Route("main", provider, is_local=True, idle_seconds=10))) as person:
        began = asyncio.get_running_loop().time()
        await person.say("go")
        assert await person.door.idle() == Completed("good")
        waited = asyncio.get_running_loop().time() - began
    assert 86_410 <= waited < 86_420
    assert [event.code for event in person.screen.all(Notice)] == ["silence", "retry"]


@in_virtual_time
async def test_a_stop_during_a_silence_is_a_stop_and_no_staleness() -> None:
    hang = Hang()
    provider = script([hang], ["never"])
    async with running(chain(Route("main", provider))) as person:
        await person.say("go")
        await person.screen.shows(Notice)
        await person.stop()
        assert hang.closed.is_set()
        await asyncio.sleep(1000)
    assert person.screen.outcomes == [Interrupted("user")]
    assert len(provider.requests) == 1
    assert [event.code for event in person.screen.all(Notice)] == ["silence"]


@in_virtual_time
async def test_a_watch_that_sees_signs_tells_of_the_one_long_silence_alone() -> None:
    loop = asyncio.get_running_loop()
    told: list[float] = []
    watch = StallTimer((10.0, 10.0), lambda silent, _: told.append(silent))
    with watch:
        for _ in range(1000):
            await asyncio.sleep(1)
            watch.alive()
        await asyncio.sleep(9)
    assert not watch.is_stale
    assert told == [pytest.approx(6.0)]
    assert loop.time() == pytest.approx(1009)
