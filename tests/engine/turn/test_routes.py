"""Which model serves: health per route, a rest after a failure, and the usual order again after it."""

import asyncio
import itertools

import pytest

from hark.engine.turn.routes import FIRST_COOL_DOWN_SECONDS, LONGEST_COOL_DOWN_SECONDS, Health, Route, Routes
from hark.protocol.commands import ChooseRoute
from hark.protocol.events import RouteChanged
from hark.protocol.outcomes import Completed, Failed, Interrupted
from hark.protocol.provider import BadAddress, BadKey, BadRequest
from hark.providers.scripted import Fail, Hang
from tests.engine.engine_fixture import running
from tests.engine.route_chain import DOWN, chain, in_virtual_time, limited, script

WRONG = BadKey("The key is wrong.")


class HandClock:
    """Time that only a test moves."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self._names = itertools.count(1)

    def now(self) -> float:
        return self.time

    def new_id(self) -> str:
        return f"h{next(self._names)}"


def two(clock: HandClock) -> tuple[Routes, Route, Route]:
    first, second = Route("first", script()), Route("second", script())
    return Routes([first, second], clock), first, second


def test_the_rest_after_a_failure_doubles_from_a_minute_to_four_hours_and_no_further() -> None:
    clock = HandClock()
    routes, first, _ = two(clock)
    rests: list[float] = []
    for _ in range(1_200):
        assert routes.first("t") is first
        routes.failed(first)
        rests.append(routes.health("first").rests_until - clock.now())
        clock.time = routes.health("first").rests_until
    assert rests[:10] == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3840.0, 7680.0, 14400.0, 14400.0]
    assert rests[0] == FIRST_COOL_DOWN_SECONDS
    assert rests[-1] == LONGEST_COOL_DOWN_SECONDS


def test_a_route_that_rests_does_not_serve_until_the_very_end_of_its_rest() -> None:
    clock = HandClock()
    routes, first, second = two(clock)
    routes.failed(first)
    clock.time += 59.9
    assert routes.first("t1") is second
    clock.time += 0.1
    assert routes.first("t2") is first


def test_many_turns_that_fail_at_the_same_time_are_one_failure() -> None:
    clock = HandClock()
    routes, first, _ = two(clock)
    for _ in range(20):
        routes.failed(first)
    assert routes.health("first") == Health(1, clock.now() + 60.0)


def test_the_servers_own_wish_prolongs_the_rest_and_never_shortens_it() -> None:
    clock = HandClock()
    routes, first, second = two(clock)
    routes.failed(first, 600.0)
    routes.failed(second, 5.0)
    assert routes.health("first").rests_until == clock.now() + 600.0
    assert routes.health("second").rests_until == clock.now() + 60.0
    routes.failed(second, 90.0)
    assert routes.health("second") == Health(1, clock.now() + 90.0)


def test_after_its_rest_a_route_is_tried_by_one_turn_at_a_time() -> None:
    clock = HandClock()
    routes, first, second = two(clock)
    routes.failed(first)
    clock.time += 60.0
    assert routes.first("t1") is first
    assert routes.first("t2") is second
    assert routes.after(["second"], "t3") is None
    assert not routes.has_other(["second"])
    routes.let_go(first, "t1")
    assert routes.first("t4") is first
    routes.succeeded(first)
    assert routes.first("t5") is first
    assert routes.first("t6") is first


def test_the_end_of_a_turn_that_tries_nothing_does_not_let_a_second_turn_try() -> None:
    clock = HandClock()
    routes, first, second = two(clock)
    assert routes.first("early") is first
    routes.failed(first)
    clock.time += 60.0
    assert routes.first("probe") is first
    routes.let_go(first, "early")
    assert routes.first("late") is second


def test_a_success_forgets_all_failures() -> None:
    clock = HandClock()
    routes, first, _ = two(clock)
    for _ in range(3):
        routes.failed(first)
        clock.time = routes.health("first").rests_until
    routes.succeeded(first)
    routes.failed(first)
    assert routes.health("first") == Health(1, clock.now() + 60.0)


def test_a_route_alone_is_always_tried() -> None:
    clock = HandClock()
    route = Route("only", script())
    routes = Routes([route], clock)
    for number in range(5):
        assert routes.first(f"t{number}") is route
        routes.failed(route, 3600.0)


def test_when_all_rest_the_one_that_comes_back_first_is_tried() -> None:
    clock = HandClock()
    routes, first, second = two(clock)
    routes.failed(first, 600.0)
    routes.failed(second)
    assert routes.first("t") is second


def test_a_chosen_route_goes_first_and_the_others_stay_behind_it_in_their_order() -> None:
    clock = HandClock()
    a, b, c = (Route(name, script()) for name in "abc")
    routes = Routes([a, b, c], clock)
    assert routes.first("t", "c") is c
    assert routes.after(["c"], "t", "c") is a
    assert routes.after(["c", "a"], "t", "c") is b
    assert routes.after(["c", "a", "b"], "t", "c") is None
    assert routes.first("t", "none such") is a


@in_virtual_time
async def test_the_fallback_serves_until_the_rest_is_over_and_each_change_is_told_once() -> None:
    first = script([DOWN], ["four"], ["five"])
    second = script(["one"], ["two"], ["three"])
    bench = chain(Route("first", first), Route("second", second))
    async with running(bench) as person:
        for text in ("one", "two"):
            await person.say("go")
            assert await person.door.idle() == Completed(text)
        await asyncio.sleep(30)
        await person.say("go")
        assert await person.door.idle() == Completed("three")
        await asyncio.sleep(31)
        for text in ("four", "five"):
            await person.say("go")
            assert await person.door.idle() == Completed(text)
    changes = [(event.turn, event.route) for event in person.screen.all(RouteChanged)]
    assert changes == [("demo.t1", "second"), ("demo.t4", "first")]
    reasons = [event.reason for event in person.screen.all(RouteChanged)]
    assert "no such key" in reasons[0]
    assert reasons[1] == "it serves again"


@in_virtual_time
async def test_a_probe_that_fails_doubles_the_rest_and_the_turn_still_completes() -> None:
    first = script([DOWN], [DOWN], ["well"])
    bench = chain(Route("first", first), Route("second", script(["one"], ["two"], ["three"])))
    async with running(bench) as person:
        for pause, text in ((61, "one"), (61, "two"), (60, "three"), (0, "well")):
            await person.say("go")
            assert await person.door.idle() == Completed(text)
            await asyncio.sleep(pause)
    assert [event.route for event in person.screen.all(RouteChanged)] == ["second", "first", "second", "first"]


@in_virtual_time
async def test_the_fallbacks_rate_limit_does_not_bench_the_first_route() -> None:
    first = script([DOWN], ["back"])
    second = script([limited(1000)])
    bench = chain(Route("first", first), Route("second", second))
    async with running(bench) as person:
        await person.say("go")
        outcome = await person.door.idle()
        assert isinstance(outcome, Failed)
        assert "429" in outcome.error.message
        now = bench.clock.now()
        assert bench.routes.health("first").rests_until == pytest.approx(now + 60, abs=1)
        assert bench.routes.health("second").rests_until == pytest.approx(now + 1000, abs=1)
        await asyncio.sleep(61)
        await person.say("go")
        assert await person.door.idle() == Completed("back")


@in_virtual_time
async def test_an_interrupt_changes_no_health_and_goes_to_no_other_route() -> None:
    hang = Hang()
    second = script(["never"])
    bench = chain(Route("first", script(["par", hang], ["next"])), Route("second", second))
    async with running(bench) as person:
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        assert bench.routes.health("first") == Health()
        await person.say("again")
        assert await person.door.idle() == Completed("next")
    assert person.screen.outcomes == [Interrupted("user"), Completed("next")]
    assert second.requests == []
    assert person.screen.all(RouteChanged) == []


@in_virtual_time
async def test_a_probe_that_is_interrupted_leaves_the_route_to_the_next_turn() -> None:
    hang = Hang()
    first = script([DOWN], [hang], ["well"])
    bench = chain(Route("first", first), Route("second", script(["one"])))
    async with running(bench) as person:
        await person.say("go")
        await person.door.idle()
        await asyncio.sleep(61)
        await person.say("go")
        await hang.reached.wait()
        before = bench.routes.health("first").rests_until
        await person.stop()
        assert bench.routes.health("first") == Health(1, before)
        await person.say("go")
        assert await person.door.idle() == Completed("well")


@in_virtual_time
async def test_a_bad_request_fails_at_once_and_changes_no_health() -> None:
    second = script(["never"])
    bench = chain(Route("first", script([Fail(BadRequest("400: what?"))], ["fine"])), Route("second", second))
    async with running(bench) as person:
        await person.say("go")
        outcome = await person.door.idle()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "bad_request"
        assert bench.routes.health("first") == Health()
        await person.say("go")
        assert await person.door.idle() == Completed("fine")
    assert second.requests == []


@in_virtual_time
async def test_a_session_that_learns_of_anothers_failure_is_told_why_another_route_serves() -> None:
    first = script(["one"], [DOWN])
    bench = chain(Route("first", first), Route("second", script(["two"], ["three"])))
    async with running(bench) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("one")
        async with running(bench, "other") as neighbour:
            await neighbour.say("go")
            assert await neighbour.door.idle() == Completed("two")
        await person.say("go")
        assert await person.door.idle() == Completed("three")
    changes = [(event.route, event.reason) for event in person.screen.all(RouteChanged)]
    assert changes == [("second", "first failed a short while ago")]


@in_virtual_time
async def test_a_cut_on_the_fallback_is_no_reason_to_tell_the_change_again() -> None:
    hang = Hang()
    bench = chain(Route("first", script(["one"], [DOWN])), Route("second", script(["half", hang], ["done"])))
    async with running(bench) as person:
        await person.say("go")
        assert await person.door.idle() == Completed("one")
        await person.say("go")
        await hang.reached.wait()
        await person.stop()
        await person.say("go")
        assert await person.door.idle() == Completed("done")
    assert [event.route for event in person.screen.all(RouteChanged)] == ["second"]


@in_virtual_time
async def test_a_chosen_route_serves_from_the_next_turn_on_and_is_told_once() -> None:
    bench = chain(Route("first", script(["one"])), Route("second", script(["two"], ["three"])))
    async with running(bench) as person:
        await person.say("go")
        await person.door.idle()
        assert await person.door.change(ChooseRoute("x1", "second")) is None
        for text in ("two", "three"):
            await person.say("go")
            assert await person.door.idle() == Completed(text)
    changes = [(event.route, event.reason) for event in person.screen.all(RouteChanged)]
    assert changes == [("second", "you chose it")]


@in_virtual_time
async def test_a_chosen_route_is_tried_at_once_however_long_it_would_rest() -> None:
    bench = chain(
        Route("first", script([Fail(WRONG)], [Fail(WRONG)], ["first is mended"])),
        Route("second", script([Fail(WRONG)], ["second is mended"])),
    )
    async with running(bench) as person:
        for _ in range(2):
            await person.say("go")
            assert isinstance(await person.door.idle(), Failed)
        await person.door.change(ChooseRoute("x1", "second"))
        await person.say("go")
        assert await person.door.idle() == Completed("second is mended")
        await person.door.change(ChooseRoute("x2", ""))  # the usual one, as after /reset
        await person.say("go")
        assert await person.door.idle() == Completed("first is mended")


@in_virtual_time
async def test_an_address_that_cant_be_used_lets_the_next_route_serve() -> None:
    bench = chain(Route("first", script([Fail(BadAddress("no URL"))])), Route("second", script(["done"], ["again"])))
    async with running(bench) as person:
        for text in ("done", "again"):
            await person.say("go")
            assert await person.door.idle() == Completed(text)
