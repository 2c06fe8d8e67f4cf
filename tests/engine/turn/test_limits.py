"""What a turn may use up: steps, tokens and money, none of it invented."""

from dataclasses import replace

import pytest

from hark.engine.turn.limits import Meter, PriorUsage
from hark.engine.turn.routes import Route, Routes
from hark.protocol.outcomes import Completed, LimitReached, Usage
from hark.protocol.provider import UsageChunk
from hark.protocol.rules import Limits, Rules
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import make_bench, running

NOBODY = ScriptedProvider([])
MILLION = 1_000_000


def test_what_a_cache_served_costs_its_own_price() -> None:
    meter = Meter(Limits())
    meter.add(Usage(MILLION, MILLION, 600_000), Route("r", NOBODY, 10.0, 50.0, 1.0))
    assert meter.cost == pytest.approx(0.4 * 10 + 0.6 * 1 + 50)


def test_without_a_price_of_its_own_a_cached_token_costs_like_any_other() -> None:
    meter = Meter(Limits())
    meter.add(Usage(MILLION, 0, 600_000), Route("r", NOBODY, 10.0, 50.0))
    assert meter.cost == pytest.approx(10)


def test_a_cached_token_that_is_free_costs_nothing() -> None:
    meter = Meter(Limits())
    meter.add(Usage(MILLION, 0, MILLION), Route("r", NOBODY, 10.0, 50.0, 0.0))
    assert meter.cost == 0.0


def test_a_model_without_a_known_price_has_no_invented_cost() -> None:
    meter = Meter(Limits(cost_usd=0.01))
    meter.add(Usage(MILLION, MILLION), Route("r", NOBODY))
    meter.add(Usage(MILLION, MILLION), Route("r", NOBODY, input_price=1.0))
    assert meter.cost is None
    assert meter.usage == Usage(2 * MILLION, 2 * MILLION)
    assert meter.reached(1) is None


def test_each_reply_costs_what_its_own_route_costs() -> None:
    meter = Meter(Limits())
    meter.add(Usage(MILLION, 0), Route("dear", NOBODY, 10.0, 10.0))
    meter.add(Usage(MILLION, 0), Route("cheap", NOBODY, 1.0, 1.0))
    assert meter.cost == pytest.approx(11)


@pytest.mark.parametrize(
    ("limits", "name"),
    [(Limits(steps=2), "steps"), (Limits(tokens=20), "tokens"), (Limits(cost_usd=0.00002), "cost_usd")],
)
def test_a_limit_forbids_the_step_that_would_go_beyond_it(limits: Limits, name: str) -> None:
    meter = Meter(limits)
    assert meter.reached(1) is None
    meter.add(Usage(10, 10), Route("r", NOBODY, 1.0, 1.0))
    limit = meter.reached(3)
    assert isinstance(limit, LimitReached)
    assert limit.limit == name


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(session_tokens=100), "session_tokens"),
        (Limits(session_cost_usd=1.0), "session_cost_usd"),
        (Limits(day_cost_usd=5.0), "day_cost_usd"),
    ],
)
def test_what_was_used_before_counts_against_the_session_and_the_day(limits: Limits, name: str) -> None:
    meter = Meter(limits)
    assert meter.reached(1) is None
    meter.begin(PriorUsage(tokens=90, cost=0.5, day_cost=4.5))
    assert meter.reached(1) is None
    meter.add(Usage(MILLION // 2, 0), Route("r", NOBODY, 1.0, 1.0))
    limit = meter.reached(2)
    assert isinstance(limit, LimitReached)
    assert limit.limit == name


async def test_the_sessions_limit_ends_the_next_turn_before_it_asks_a_model() -> None:
    provider = ScriptedProvider([[UsageChunk(Usage(80, 20)), "a"], ["b"]])
    async with running(make_bench(provider, rules=Rules(limits=Limits(session_tokens=100)))) as person:
        await person.say("one")
        assert await person.door.idle() == Completed("a")
        await person.say("two")
        outcome = await person.door.idle()
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "session_tokens"
    assert len(provider.requests) == 1


async def test_the_days_limit_counts_all_sessions_of_the_home() -> None:
    provider = ScriptedProvider([[UsageChunk(Usage(MILLION, 0)), "a"], ["b"]])
    rules = Rules(limits=Limits(day_cost_usd=1.5))
    bench = make_bench(provider, rules=rules)
    bench = replace(bench, routes=Routes([Route("r", provider, 2.0, 2.0)], bench.clock))
    async with running(bench, "first") as person:
        await person.say("one")
        assert await person.door.idle() == Completed("a")
    async with running(bench, "second") as person:
        await person.say("two")
        outcome = await person.door.idle()
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "day_cost_usd"
    assert len(provider.requests) == 1
