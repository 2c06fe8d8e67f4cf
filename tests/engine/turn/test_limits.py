"""The limits of a turn: steps, tokens and cost. Unknown prices are never guessed."""

from dataclasses import replace

import pytest

from hark.engine.turn.limits import PriorUsage, UsageMeter
from hark.engine.turn.routes import Route, Routes
from hark.protocol.outcomes import Completed, LimitReached, Usage
from hark.protocol.provider import UsageChunk
from hark.protocol.rules import Limits, Rules
from hark.providers.scripted import ScriptedProvider
from tests.engine.engine_fixture import make_services, run_session

UNUSED_PROVIDER = ScriptedProvider([])
MILLION = 1_000_000


def test_cached_tokens_are_charged_at_the_cached_price() -> None:
    meter = UsageMeter(Limits())
    meter.add(Usage(MILLION, MILLION, 600_000), Route("r", UNUSED_PROVIDER, 10.0, 50.0, 1.0))
    assert meter.cost == pytest.approx(0.4 * 10 + 0.6 * 1 + 50)


def test_cached_tokens_are_charged_at_the_input_price_when_no_cached_price_is_known() -> None:
    meter = UsageMeter(Limits())
    meter.add(Usage(MILLION, 0, 600_000), Route("r", UNUSED_PROVIDER, 10.0, 50.0))
    assert meter.cost == pytest.approx(10)


def test_cached_tokens_can_be_free() -> None:
    meter = UsageMeter(Limits())
    meter.add(Usage(MILLION, 0, MILLION), Route("r", UNUSED_PROVIDER, 10.0, 50.0, 0.0))
    assert meter.cost == 0.0


def test_the_cost_is_unknown_when_the_prices_of_a_route_are_unknown() -> None:
    meter = UsageMeter(Limits(cost_usd=0.01))
    meter.add(Usage(MILLION, MILLION), Route("r", UNUSED_PROVIDER))
    meter.add(Usage(MILLION, MILLION), Route("r", UNUSED_PROVIDER, input_price=1.0))
    assert meter.cost is None
    assert meter.usage == Usage(2 * MILLION, 2 * MILLION)
    assert meter.check_limits(1) is None


def test_each_reply_is_charged_at_the_price_of_its_route() -> None:
    meter = UsageMeter(Limits())
    meter.add(Usage(MILLION, 0), Route("dear", UNUSED_PROVIDER, 10.0, 10.0))
    meter.add(Usage(MILLION, 0), Route("cheap", UNUSED_PROVIDER, 1.0, 1.0))
    assert meter.cost == pytest.approx(11)


@pytest.mark.parametrize(
    ("limits", "name"),
    [(Limits(steps=2), "steps"), (Limits(tokens=20), "tokens"), (Limits(cost_usd=0.00002), "cost_usd")],
)
def test_a_limit_forbids_the_step_that_would_exceed_it(limits: Limits, name: str) -> None:
    meter = UsageMeter(limits)
    assert meter.check_limits(1) is None
    meter.add(Usage(10, 10), Route("r", UNUSED_PROVIDER, 1.0, 1.0))
    limit = meter.check_limits(3)
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
def test_prior_usage_counts_towards_the_session_and_day_limits(limits: Limits, name: str) -> None:
    meter = UsageMeter(limits)
    assert meter.check_limits(1) is None
    meter.set_prior_usage(PriorUsage(tokens=90, cost=0.5, day_cost=4.5))
    assert meter.check_limits(1) is None
    meter.add(Usage(MILLION // 2, 0), Route("r", UNUSED_PROVIDER, 1.0, 1.0))
    limit = meter.check_limits(2)
    assert isinstance(limit, LimitReached)
    assert limit.limit == name


async def test_the_session_limit_ends_the_next_turn_before_a_model_call() -> None:
    provider = ScriptedProvider([[UsageChunk(Usage(80, 20)), "a"], ["b"]])
    async with run_session(make_services(provider, rules=Rules(limits=Limits(session_tokens=100)))) as user:
        await user.say("one")
        assert await user.proxy.idle() == Completed("a")
        await user.say("two")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "session_tokens"
    assert len(provider.requests) == 1


async def test_the_day_limit_counts_all_sessions_in_the_home() -> None:
    provider = ScriptedProvider([[UsageChunk(Usage(MILLION, 0)), "a"], ["b"]])
    rules = Rules(limits=Limits(day_cost_usd=1.5))
    services = make_services(provider, rules=rules)
    services = replace(services, routes=Routes([Route("r", provider, 2.0, 2.0)], services.clock))
    async with run_session(services, "first") as user:
        await user.say("one")
        assert await user.proxy.idle() == Completed("a")
    async with run_session(services, "second") as user:
        await user.say("two")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "day_cost_usd"
    assert len(provider.requests) == 1
