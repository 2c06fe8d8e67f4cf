"""Getting one reply: retries, route changes, and a bounded number of requests."""

import asyncio
from collections.abc import AsyncGenerator

import anyio
import pytest

from hark.engine.turn.retry import RETRIES_PER_TURN
from hark.engine.turn.routes import Route, RouteHealth
from hark.protocol.events import Notice, ReplyRestarted, RouteChanged
from hark.protocol.messages import AssistantMessage
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import Chunk, ContentRefused, ProviderError, Request
from hark.providers.scripted import Fail, Hang, Pause, ScriptedProvider, ScriptedReply
from tests.engine.engine_fixture import call_chunks, quick_tool, run_session
from tests.engine.route_chain import (
    BROKE,
    BUSY,
    DOWN,
    GONE,
    LOST,
    in_virtual_time,
    rate_limited,
    scripted_provider,
    services_with_routes,
)


@pytest.mark.parametrize("failure", [DOWN, GONE, BROKE], ids=["401", "404", "402"])
def test_a_permanent_failure_switches_the_turn_to_the_next_route_immediately(failure: Fail) -> None:
    @in_virtual_time
    async def run_test() -> None:
        first, second = scripted_provider([failure]), scripted_provider(["good"])
        async with run_session(services_with_routes(Route("first", first), Route("second", second))) as user:
            start = asyncio.get_running_loop().time()
            await user.say("go")
            assert await user.proxy.idle() == Completed("good")
            assert asyncio.get_running_loop().time() - start < 0.1
        assert (len(first.requests), len(second.requests)) == (1, 1)
        assert second.requests[0].messages == first.requests[0].messages
        (change,) = user.recorder.of_kind(RouteChanged)
        assert change.route == "second"
        assert str(failure.error) in change.reason
        assert user.recorder.of_kind(Notice) == []

    run_test()


@in_virtual_time
async def test_an_overloaded_route_is_tried_three_times_before_the_next_route() -> None:
    first, second = scripted_provider(*[[BUSY]] * 9), scripted_provider(["good"])
    async with run_session(services_with_routes(Route("first", first), Route("second", second))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
    assert (len(first.requests), len(second.requests)) == (3, 1)
    assert {event.code for event in user.recorder.of_kind(Notice)} == {"retry"}
    assert len(user.recorder.of_kind(Notice)) == 2


@in_virtual_time
async def test_a_long_rate_limit_switches_the_route_when_another_is_available() -> None:
    first, second = scripted_provider([rate_limited(60)]), scripted_provider(["good"])
    async with run_session(services_with_routes(Route("first", first), Route("second", second))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
    assert len(first.requests) == 1
    assert user.recorder.of_kind(Notice) == []


@in_virtual_time
async def test_a_single_route_waits_for_the_requested_rate_limit_delay() -> None:
    first = scripted_provider([rate_limited(60)], ["good"])
    async with run_session(services_with_routes(Route("first", first))) as user:
        start = asyncio.get_running_loop().time()
        await user.say("go")
        assert await user.proxy.idle() == Completed("good")
        assert asyncio.get_running_loop().time() - start == pytest.approx(60, abs=0.5)


@in_virtual_time
async def test_a_rate_limit_delay_that_is_too_long_fails_the_turn_with_the_servers_message() -> None:
    first = scripted_provider([rate_limited(3600)])
    async with run_session(services_with_routes(Route("first", first))) as user:
        start = asyncio.get_running_loop().time()
        await user.say("go")
        outcome = await user.proxy.idle()
        assert asyncio.get_running_loop().time() - start < 0.1
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "rate_limit"
    assert "slow down" in outcome.error.message


@in_virtual_time
async def test_shown_text_is_discarded_when_another_route_starts_the_reply_again() -> None:
    first, second = scripted_provider(["half a ", DOWN]), scripted_provider(["whole"])
    async with run_session(services_with_routes(Route("first", first), Route("second", second))) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("whole")
        replies = [message for message in user.transcript if isinstance(message, AssistantMessage)]
    names = [type(event).__name__ for event in user.recorder.events]
    shown = [name for name in names if name in ("ReplyDelta", "ReplyRestarted")]
    assert shown == ["ReplyDelta", "ReplyRestarted", "ReplyDelta"]
    assert replies == [AssistantMessage("whole")]


@in_virtual_time
async def test_no_reply_restart_is_published_when_no_text_was_shown() -> None:
    async with run_session(
        services_with_routes(
            Route("first", scripted_provider([LOST], [DOWN])), Route("second", scripted_provider(["ok"]))
        )
    ) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("ok")
    assert user.recorder.of_kind(ReplyRestarted) == []


@in_virtual_time
async def test_the_number_of_requests_per_turn_is_bounded_however_many_routes_fail() -> None:
    providers = [scripted_provider(*[[BUSY]] * 50) for _ in range(4)]
    routes = [Route(f"r{number}", provider) for number, provider in enumerate(providers)]
    async with run_session(services_with_routes(*routes)) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, Failed)
    counts = [len(provider.requests) for provider in providers]
    assert sum(counts) == RETRIES_PER_TURN + len(providers)
    assert counts == [3, 3, 3, 1]


@in_virtual_time
async def test_the_retry_budget_is_per_turn_and_not_per_step() -> None:
    first = scripted_provider(*([LOST], [*call_chunks("look")]) * 20)
    async with run_session(services_with_routes(Route("first", first), tools=[quick_tool()])) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, Failed)
    assert len(first.requests) == 2 * RETRIES_PER_TURN + 1


@in_virtual_time
async def test_the_rest_of_a_turn_stays_on_the_fallback_route() -> None:
    first, second = scripted_provider([DOWN], ["never"]), scripted_provider([*call_chunks("look")], ["done"])
    async with run_session(
        services_with_routes(Route("first", first), Route("second", second), tools=[quick_tool()])
    ) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("done")
    assert (len(first.requests), len(second.requests)) == (1, 2)
    assert len(user.recorder.of_kind(RouteChanged)) == 1


@pytest.mark.parametrize("error", [ContentRefused("no"), ProviderError("a web page", "bad_url")])
def test_a_failure_that_another_route_cannot_fix_fails_the_turn_immediately(error: ProviderError) -> None:
    @in_virtual_time
    async def run_test() -> None:
        first, second = scripted_provider([Fail(error)]), scripted_provider(["never"])
        services = services_with_routes(Route("first", first), Route("second", second))
        async with run_session(services) as user:
            await user.say("go")
            outcome = await user.proxy.idle()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == error.code
        assert outcome.error.message == str(error)
        assert second.requests == []
        assert services.routes.health_of("first") == RouteHealth()

    run_test()


@in_virtual_time
async def test_a_stop_during_a_retry_pause_ends_the_pause_and_the_next_turn_retries() -> None:
    first, second = scripted_provider([rate_limited(9)], ["good"]), scripted_provider(["never"])
    services = services_with_routes(Route("first", first), Route("second", second))
    async with run_session(services) as user:
        await user.say("go")
        await user.recorder.wait_for(Notice)
        start = asyncio.get_running_loop().time()
        await user.stop()
        assert asyncio.get_running_loop().time() - start < 0.05
        assert services.routes.health_of("first") == RouteHealth()
        await user.say("again")
        assert await user.proxy.idle() == Completed("good")
    assert user.recorder.outcomes[0] == Interrupted("user")
    assert second.requests == []


class CountingProvider(ScriptedProvider):
    """A scripted provider that counts how many of its replies run concurrently."""

    def __init__(self, replies: list[ScriptedReply]) -> None:
        super().__init__(replies)
        self.running = 0
        self.max_running = 0

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            async for chunk in super().stream(request):
                yield chunk
        finally:
            self.running -= 1


@in_virtual_time
async def test_concurrent_requests_are_limited_to_the_routes_capacity() -> None:
    provider = CountingProvider([["a", Pause(10), "b"]] * 6)
    services = services_with_routes(Route("first", provider, limiter=anyio.CapacityLimiter(2)))
    async with anyio.create_task_group() as tasks:

        async def run_turn(name: str) -> None:
            async with run_session(services, name) as user:
                await user.say("go")
                assert await user.proxy.idle() == Completed("ab")

        for number in range(6):
            tasks.start_soon(run_turn, f"s{number}")
    assert provider.max_running == 2
    assert len(provider.requests) == 6


@in_virtual_time
async def test_a_stop_while_a_request_waits_for_capacity_makes_no_request() -> None:
    hang = Hang()
    provider = scripted_provider([hang], ["next"])
    limiter = anyio.CapacityLimiter(1)
    services = services_with_routes(Route("first", provider, limiter=limiter))
    async with run_session(services, "one") as one, run_session(services, "two") as two:
        await one.say("go")
        await hang.reached.wait()
        await two.say("go")
        await anyio.wait_all_tasks_blocked()
        settled = await two.stop()
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert len(provider.requests) == 1
        await one.stop()
        assert limiter.borrowed_tokens == 0
        await two.say("go")
        assert await two.proxy.idle() == Completed("next")


@in_virtual_time
async def test_waiting_for_capacity_does_not_count_as_model_silence() -> None:
    provider = scripted_provider(["a", Pause(50), "b"], ["c"])
    limiter = anyio.CapacityLimiter(1)
    services = services_with_routes(Route("first", provider, limiter=limiter, first_byte_seconds=20, idle_seconds=60))
    async with run_session(services, "one") as one, run_session(services, "two") as two:
        await one.say("go")
        await one.recorder.wait_until(lambda: one.recorder.text == "a")
        await two.say("go")
        assert await two.proxy.idle() == Completed("c")
        assert await one.proxy.idle() == Completed("ab")
    assert len(provider.requests) == 2
    assert two.recorder.of_kind(Notice) == []
