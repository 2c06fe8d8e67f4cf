"""Getting one reply: another try, another route, and never a storm."""

import asyncio
from collections.abc import AsyncGenerator

import anyio
import pytest

from hark.engine.turn.retry import RETRIES_PER_TURN
from hark.engine.turn.routes import Health, Route
from hark.protocol.events import Notice, ReplyRestarted, RouteChanged
from hark.protocol.messages import AssistantMessage
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import Chunk, ContentRefused, ProviderError, Request
from hark.providers.scripted import Fail, Hang, Pause, Reply, ScriptedProvider
from tests.engine.engine_fixture import asks_for, quick_tool, running
from tests.engine.route_chain import BROKE, BUSY, DOWN, GONE, LOST, chain, in_virtual_time, limited, script


@pytest.mark.parametrize("failure", [DOWN, GONE, BROKE], ids=["401", "404", "402"])
def test_a_lasting_failure_of_a_route_moves_the_turn_to_the_next_one_at_once(failure: Fail) -> None:
    @in_virtual_time
    async def play() -> None:
        first, second = script([failure]), script(["good"])
        async with running(chain(Route("first", first), Route("second", second))) as person:
            began = asyncio.get_running_loop().time()
            await person.say("go")
            assert await person.door.idle() == Completed("good")
            assert asyncio.get_running_loop().time() - began < 0.1
        assert (len(first.requests), len(second.requests)) == (1, 1)
        assert second.requests[0].messages == first.requests[0].messages
        (change,) = person.screen.all(RouteChanged)
        assert change.route == "second"
        assert str(failure.error) in change.reason
        assert person.screen.all(Notice) == []

    play()


@in_virtual_time
async def test_an_overloaded_route_is_asked_three_times_before_the_next_one_serves() -> None:
    first, second = script(*[[BUSY]] * 9), script(["good"])
    async with running(chain(Route("first", first), Route("second", second))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("good")
    assert (len(first.requests), len(second.requests)) == (3, 1)
    assert {event.code for event in person.screen.all(Notice)} == {"retry"}
    assert len(person.screen.all(Notice)) == 2


@in_virtual_time
async def test_nobody_waits_long_for_a_rate_limit_when_another_route_is_there() -> None:
    first, second = script([limited(60)]), script(["good"])
    async with running(chain(Route("first", first), Route("second", second))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("good")
    assert len(first.requests) == 1
    assert person.screen.all(Notice) == []


@in_virtual_time
async def test_a_route_alone_waits_as_long_as_the_server_asks() -> None:
    first = script([limited(60)], ["good"])
    async with running(chain(Route("first", first))) as person:
        began = asyncio.get_running_loop().time()
        await person.say("go")
        assert await person.door.idle() == Completed("good")
        assert asyncio.get_running_loop().time() - began == pytest.approx(60, abs=0.5)


@in_virtual_time
async def test_a_wait_that_is_too_long_fails_at_once_with_the_servers_words() -> None:
    first = script([limited(3600)])
    async with running(chain(Route("first", first))) as person:
        began = asyncio.get_running_loop().time()
        await person.say("go")
        outcome = await person.door.idle()
        assert asyncio.get_running_loop().time() - began < 0.1
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "rate_limit"
    assert "slow down" in outcome.error.message


@in_virtual_time
async def test_text_that_was_seen_is_taken_back_when_another_route_says_it_anew() -> None:
    first, second = script(["half a ", DOWN]), script(["whole"])
    async with running(chain(Route("first", first), Route("second", second))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("whole")
        replies = [message for message in person.transcript if isinstance(message, AssistantMessage)]
    names = [type(event).__name__ for event in person.screen.events]
    shown = [name for name in names if name in ("ReplyDelta", "ReplyRestarted")]
    assert shown == ["ReplyDelta", "ReplyRestarted", "ReplyDelta"]
    assert replies == [AssistantMessage("whole")]


@in_virtual_time
async def test_nothing_is_taken_back_when_nothing_was_shown() -> None:
    async with running(chain(Route("first", script([LOST], [DOWN])), Route("second", script(["ok"])))) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("ok")
    assert person.screen.all(ReplyRestarted) == []


@in_virtual_time
async def test_one_turn_never_makes_a_storm_however_many_routes_fail() -> None:
    providers = [script(*[[BUSY]] * 50) for _ in range(4)]
    routes = [Route(f"r{number}", provider) for number, provider in enumerate(providers)]
    async with running(chain(*routes)) as person:
        await person.say("go")
        outcome = await person.door.idle()
    assert isinstance(outcome, Failed)
    counts = [len(provider.requests) for provider in providers]
    assert sum(counts) == RETRIES_PER_TURN + len(providers)
    assert counts == [3, 3, 3, 1]


@in_virtual_time
async def test_the_budget_is_the_turns_and_not_the_steps() -> None:
    first = script(*([LOST], [*asks_for("look")]) * 20)
    async with running(chain(Route("first", first), tools=[quick_tool()])) as person:
        await person.say("go")
        outcome = await person.door.idle()
    assert isinstance(outcome, Failed)
    assert len(first.requests) == 2 * RETRIES_PER_TURN + 1


@in_virtual_time
async def test_the_rest_of_a_turn_stays_with_the_route_that_took_over() -> None:
    first, second = script([DOWN], ["never"]), script([*asks_for("look")], ["done"])
    async with running(chain(Route("first", first), Route("second", second), tools=[quick_tool()])) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("done")
    assert (len(first.requests), len(second.requests)) == (1, 2)
    assert len(person.screen.all(RouteChanged)) == 1


@pytest.mark.parametrize("error", [ContentRefused("no"), ProviderError("a web page", "bad_url")])
def test_what_another_route_would_not_mend_fails_at_once(error: ProviderError) -> None:
    @in_virtual_time
    async def play() -> None:
        first, second = script([Fail(error)]), script(["never"])
        bench = chain(Route("first", first), Route("second", second))
        async with running(bench) as person:
            await person.say("go")
            outcome = await person.door.idle()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == error.code
        assert outcome.error.message == str(error)
        assert second.requests == []
        assert bench.routes.health("first") == Health()

    play()


@in_virtual_time
async def test_a_stop_in_the_pause_ends_it_in_that_moment_and_the_next_turn_asks_anew() -> None:
    first, second = script([limited(9)], ["good"]), script(["never"])
    bench = chain(Route("first", first), Route("second", second))
    async with running(bench) as person:
        await person.say("go")
        await person.screen.shows(Notice)
        began = asyncio.get_running_loop().time()
        await person.stop()
        assert asyncio.get_running_loop().time() - began < 0.05
        assert bench.routes.health("first") == Health()
        await person.say("again")
        assert await person.door.idle() == Completed("good")
    assert person.screen.outcomes[0] == Interrupted("user")
    assert second.requests == []


class Counted(ScriptedProvider):
    """A provider that counts how many of its replies run at the same time."""

    def __init__(self, replies: list[Reply]) -> None:
        super().__init__(replies)
        self.now = 0
        self.most = 0

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            async for chunk in super().stream(request):
                yield chunk
        finally:
            self.now -= 1


@in_virtual_time
async def test_no_more_requests_run_at_the_same_time_than_a_route_allows() -> None:
    provider = Counted([["a", Pause(10), "b"]] * 6)
    bench = chain(Route("first", provider, gate=anyio.CapacityLimiter(2)))
    async with anyio.create_task_group() as tasks:

        async def one(name: str) -> None:
            async with running(bench, name) as person:
                await person.say("go")
                assert await person.door.idle() == Completed("ab")

        for number in range(6):
            tasks.start_soon(one, f"s{number}")
    assert provider.most == 2
    assert len(provider.requests) == 6


@in_virtual_time
async def test_a_stop_while_a_request_waits_for_its_place_makes_no_request_and_keeps_none() -> None:
    hang = Hang()
    provider = script([hang], ["next"])
    gate = anyio.CapacityLimiter(1)
    bench = chain(Route("first", provider, gate=gate))
    async with running(bench, "one") as one, running(bench, "two") as two:
        await one.say("go")
        await hang.reached.wait()
        await two.say("go")
        await anyio.wait_all_tasks_blocked()
        settled = await two.stop()
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert len(provider.requests) == 1
        await one.stop()
        assert gate.borrowed_tokens == 0
        await two.say("go")
        assert await two.door.idle() == Completed("next")


@in_virtual_time
async def test_waiting_for_a_place_is_not_the_models_silence() -> None:
    provider = script(["a", Pause(50), "b"], ["c"])
    gate = anyio.CapacityLimiter(1)
    bench = chain(Route("first", provider, gate=gate, first_byte_seconds=20, idle_seconds=60))
    async with running(bench, "one") as one, running(bench, "two") as two:
        await one.say("go")
        await one.screen.until(lambda: one.screen.text == "a")
        await two.say("go")
        assert await two.door.idle() == Completed("c")
        assert await one.door.idle() == Completed("ab")
    assert len(provider.requests) == 2
    assert two.screen.all(Notice) == []
