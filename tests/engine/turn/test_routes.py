"""Choosing a route: health per route, a cool-down after a failure, and the default order again afterwards."""

import asyncio
import itertools

import pytest

from hark.engine.turn.routes import FIRST_COOL_DOWN_SECONDS, LONGEST_COOL_DOWN_SECONDS, Route, RouteHealth, Routes
from hark.protocol.commands import ChooseRoute
from hark.protocol.events import RouteChanged
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import BadAddress, BadKey, BadRequest
from hark.providers.scripted import Fail, Hang
from tests.engine.engine_fixture import run_session
from tests.engine.route_chain import DOWN, in_virtual_time, rate_limited, scripted_provider, services_with_routes

WRONG = BadKey("The key is wrong.")


class ManualClock:
    """A fake clock that advances only when the test sets `time`."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self._names = itertools.count(1)

    def now(self) -> float:
        return self.time

    def new_id(self) -> str:
        return f"h{next(self._names)}"


def two_routes(clock: ManualClock) -> tuple[Routes, Route, Route]:
    first, second = Route("first", scripted_provider()), Route("second", scripted_provider())
    return Routes([first, second], clock), first, second


def test_the_cool_down_doubles_from_a_minute_to_four_hours() -> None:
    clock = ManualClock()
    routes, first, _ = two_routes(clock)
    cool_downs: list[float] = []
    for _ in range(1_200):
        assert routes.choose("t") is first
        routes.record_failure(first)
        cool_downs.append(routes.health_of("first").cool_down_until - clock.now())
        clock.time = routes.health_of("first").cool_down_until
    assert cool_downs[:10] == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3840.0, 7680.0, 14400.0, 14400.0]
    assert cool_downs[0] == FIRST_COOL_DOWN_SECONDS
    assert cool_downs[-1] == LONGEST_COOL_DOWN_SECONDS


def test_a_route_in_cool_down_is_not_chosen_until_the_cool_down_ends() -> None:
    clock = ManualClock()
    routes, first, second = two_routes(clock)
    routes.record_failure(first)
    clock.time += 59.9
    assert routes.choose("t1") is second
    clock.time += 0.1
    assert routes.choose("t2") is first


def test_concurrent_failures_of_many_turns_count_as_one_failure() -> None:
    clock = ManualClock()
    routes, first, _ = two_routes(clock)
    for _ in range(20):
        routes.record_failure(first)
    assert routes.health_of("first") == RouteHealth(1, clock.now() + 60.0)


def test_the_servers_retry_delay_extends_the_cool_down_but_never_shortens_it() -> None:
    clock = ManualClock()
    routes, first, second = two_routes(clock)
    routes.record_failure(first, 600.0)
    routes.record_failure(second, 5.0)
    assert routes.health_of("first").cool_down_until == clock.now() + 600.0
    assert routes.health_of("second").cool_down_until == clock.now() + 60.0
    routes.record_failure(second, 90.0)
    assert routes.health_of("second") == RouteHealth(1, clock.now() + 90.0)


def test_after_a_cool_down_only_one_turn_at_a_time_makes_a_trial_request_to_the_route() -> None:
    clock = ManualClock()
    routes, first, second = two_routes(clock)
    routes.record_failure(first)
    clock.time += 60.0
    assert routes.choose("t1") is first
    assert routes.choose("t2") is second
    assert routes.choose_next(["second"], "t3") is None
    assert not routes.has_untried_route(["second"])
    routes.release_trial(first, "t1")
    assert routes.choose("t4") is first
    routes.record_success(first)
    assert routes.choose("t5") is first
    assert routes.choose("t6") is first


def test_the_end_of_an_earlier_turn_does_not_release_another_turns_trial_request() -> None:
    clock = ManualClock()
    routes, first, second = two_routes(clock)
    assert routes.choose("early") is first
    routes.record_failure(first)
    clock.time += 60.0
    assert routes.choose("probe") is first
    routes.release_trial(first, "early")
    assert routes.choose("late") is second


def test_a_success_resets_all_failures() -> None:
    clock = ManualClock()
    routes, first, _ = two_routes(clock)
    for _ in range(3):
        routes.record_failure(first)
        clock.time = routes.health_of("first").cool_down_until
    routes.record_success(first)
    routes.record_failure(first)
    assert routes.health_of("first") == RouteHealth(1, clock.now() + 60.0)


def test_a_single_route_is_always_tried() -> None:
    clock = ManualClock()
    route = Route("only", scripted_provider())
    routes = Routes([route], clock)
    for number in range(5):
        assert routes.choose(f"t{number}") is route
        routes.record_failure(route, 3600.0)


def test_the_route_whose_cool_down_ends_first_is_tried_when_all_are_in_cool_down() -> None:
    clock = ManualClock()
    routes, first, second = two_routes(clock)
    routes.record_failure(first, 600.0)
    routes.record_failure(second)
    assert routes.choose("t") is second


def test_the_chosen_route_comes_first_and_the_others_keep_their_order() -> None:
    clock = ManualClock()
    a, b, c = (Route(name, scripted_provider()) for name in "abc")
    routes = Routes([a, b, c], clock)
    assert routes.choose("t", "c") is c
    assert routes.choose_next(["c"], "t", "c") is a
    assert routes.choose_next(["c", "a"], "t", "c") is b
    assert routes.choose_next(["c", "a", "b"], "t", "c") is None
    assert routes.choose("t", "none such") is a


@in_virtual_time
async def test_the_fallback_is_used_until_the_cool_down_ends_and_each_change_is_published_once() -> None:
    first = scripted_provider([DOWN], ["four"], ["five"])
    second = scripted_provider(["one"], ["two"], ["three"])
    services = services_with_routes(Route("first", first), Route("second", second))
    async with run_session(services) as user:
        for text in ("one", "two"):
            await user.say("go")
            assert await user.proxy.idle() == Completed(text)
        await asyncio.sleep(30)
        await user.say("go")
        assert await user.proxy.idle() == Completed("three")
        await asyncio.sleep(31)
        for text in ("four", "five"):
            await user.say("go")
            assert await user.proxy.idle() == Completed(text)
    changes = [(event.turn, event.route) for event in user.recorder.of_kind(RouteChanged)]
    assert changes == [("demo.t1", "second"), ("demo.t4", "first")]
    reasons = [event.reason for event in user.recorder.of_kind(RouteChanged)]
    assert "no such key" in reasons[0]
    assert reasons[1] == "it is available again"


@in_virtual_time
async def test_a_failed_trial_request_doubles_the_cool_down_and_the_turn_still_completes() -> None:
    first = scripted_provider([DOWN], [DOWN], ["well"])
    services = services_with_routes(
        Route("first", first), Route("second", scripted_provider(["one"], ["two"], ["three"]))
    )
    async with run_session(services) as user:
        for pause, text in ((61, "one"), (61, "two"), (60, "three"), (0, "well")):
            await user.say("go")
            assert await user.proxy.idle() == Completed(text)
            await asyncio.sleep(pause)
    assert [event.route for event in user.recorder.of_kind(RouteChanged)] == ["second", "first", "second", "first"]


@in_virtual_time
async def test_a_rate_limit_on_the_fallback_does_not_extend_the_first_routes_cool_down() -> None:
    first = scripted_provider([DOWN], ["back"])
    second = scripted_provider([rate_limited(1000)])
    services = services_with_routes(Route("first", first), Route("second", second))
    async with run_session(services) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        assert isinstance(outcome, Failed)
        assert "429" in outcome.error.message
        now = services.clock.now()
        assert services.routes.health_of("first").cool_down_until == pytest.approx(now + 60, abs=1)
        assert services.routes.health_of("second").cool_down_until == pytest.approx(now + 1000, abs=1)
        await asyncio.sleep(61)
        await user.say("go")
        assert await user.proxy.idle() == Completed("back")


@in_virtual_time
async def test_an_interrupt_changes_neither_the_health_of_a_route_nor_the_route() -> None:
    hang = Hang()
    second = scripted_provider(["never"])
    services = services_with_routes(Route("first", scripted_provider(["par", hang], ["next"])), Route("second", second))
    async with run_session(services) as user:
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        assert services.routes.health_of("first") == RouteHealth()
        await user.say("again")
        assert await user.proxy.idle() == Completed("next")
    assert user.recorder.outcomes == [Interrupted("user"), Completed("next")]
    assert second.requests == []
    assert user.recorder.of_kind(RouteChanged) == []


@in_virtual_time
async def test_after_an_interrupted_trial_request_the_next_turn_may_try_the_route() -> None:
    hang = Hang()
    first = scripted_provider([DOWN], [hang], ["well"])
    services = services_with_routes(Route("first", first), Route("second", scripted_provider(["one"])))
    async with run_session(services) as user:
        await user.say("go")
        await user.proxy.idle()
        await asyncio.sleep(61)
        await user.say("go")
        await hang.reached.wait()
        before = services.routes.health_of("first").cool_down_until
        await user.stop()
        assert services.routes.health_of("first") == RouteHealth(1, before)
        await user.say("go")
        assert await user.proxy.idle() == Completed("well")


@in_virtual_time
async def test_a_bad_request_fails_immediately_without_affecting_the_routes_health() -> None:
    second = scripted_provider(["never"])
    services = services_with_routes(
        Route("first", scripted_provider([Fail(BadRequest("400: what?"))], ["fine"])), Route("second", second)
    )
    async with run_session(services) as user:
        await user.say("go")
        outcome = await user.proxy.idle()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "bad_request"
        assert services.routes.health_of("first") == RouteHealth()
        await user.say("go")
        assert await user.proxy.idle() == Completed("fine")
    assert second.requests == []


@in_virtual_time
async def test_a_session_is_notified_of_a_route_change_caused_by_another_sessions_failure() -> None:
    first = scripted_provider(["one"], [DOWN])
    services = services_with_routes(Route("first", first), Route("second", scripted_provider(["two"], ["three"])))
    async with run_session(services) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("one")
        async with run_session(services, "other") as neighbour:
            await neighbour.say("go")
            assert await neighbour.proxy.idle() == Completed("two")
        await user.say("go")
        assert await user.proxy.idle() == Completed("three")
    changes = [(event.route, event.reason) for event in user.recorder.of_kind(RouteChanged)]
    assert changes == [("second", "first failed recently")]


@in_virtual_time
async def test_an_interruption_on_the_fallback_does_not_publish_the_route_change_again() -> None:
    hang = Hang()
    services = services_with_routes(
        Route("first", scripted_provider(["one"], [DOWN])), Route("second", scripted_provider(["half", hang], ["done"]))
    )
    async with run_session(services) as user:
        await user.say("go")
        assert await user.proxy.idle() == Completed("one")
        await user.say("go")
        await hang.reached.wait()
        await user.stop()
        await user.say("go")
        assert await user.proxy.idle() == Completed("done")
    assert [event.route for event in user.recorder.of_kind(RouteChanged)] == ["second"]


@in_virtual_time
async def test_a_chosen_route_is_used_starting_with_the_next_turn_and_published_once() -> None:
    services = services_with_routes(
        Route("first", scripted_provider(["one"])), Route("second", scripted_provider(["two"], ["three"]))
    )
    async with run_session(services) as user:
        await user.say("go")
        await user.proxy.idle()
        assert await user.proxy.change(ChooseRoute("x1", "second")) is None
        for text in ("two", "three"):
            await user.say("go")
            assert await user.proxy.idle() == Completed(text)
    changes = [(event.route, event.reason) for event in user.recorder.of_kind(RouteChanged)]
    assert changes == [("second", "you chose it")]


@in_virtual_time
async def test_a_chosen_route_is_tried_immediately_despite_its_cool_down() -> None:
    services = services_with_routes(
        Route("first", scripted_provider([Fail(WRONG)], [Fail(WRONG)], ["first is fixed"])),
        Route("second", scripted_provider([Fail(WRONG)], ["second is fixed"])),
    )
    async with run_session(services) as user:
        for _ in range(2):
            await user.say("go")
            assert isinstance(await user.proxy.idle(), Failed)
        await user.proxy.change(ChooseRoute("x1", "second"))
        await user.say("go")
        assert await user.proxy.idle() == Completed("second is fixed")
        await user.proxy.change(ChooseRoute("x2", ""))  # the default order, as after /reset
        await user.say("go")
        assert await user.proxy.idle() == Completed("first is fixed")


@in_virtual_time
async def test_an_unusable_base_url_switches_to_the_next_route() -> None:
    services = services_with_routes(
        Route("first", scripted_provider([Fail(BadAddress("no URL"))])),
        Route("second", scripted_provider(["done"], ["again"])),
    )
    async with run_session(services) as user:
        for text in ("done", "again"):
            await user.say("go")
            assert await user.proxy.idle() == Completed(text)
