"""Cron expressions have the same times as in cronsim, an independent implementation of Debian's cron."""

import itertools
import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from hark.schedules.times import CronTimes, parse_cron, parse_rule
from tests.linear_time import assert_linear

RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def make_field(rng: random.Random, low: int, high: int) -> str:
    first, last = sorted(rng.sample(range(low, high + 1), 2))
    step = rng.randint(1, 9)
    forms = ["*", "*", "*", f"*/{step}", str(first), str(last), f"{first}-{last}", f"{first}-{last}/{step}"]
    return rng.choice([*forms, f"{first},{last}"])


def make_expression(rng: random.Random) -> str:
    return " ".join(make_field(rng, low, high) for low, high in RANGES)


def oracle_next(expression: str, since: datetime) -> datetime | None:
    try:
        return next(CronSim(expression, since))
    except (StopIteration, CronSimError):
        return None


def our_next(expression: str, since: datetime, zone: ZoneInfo) -> datetime | None:
    at = parse_rule(expression, zone).next(since.timestamp())
    return None if at is None else datetime.fromtimestamp(at, zone)


def test_random_expressions_have_the_same_times_as_in_cronsim() -> None:
    rng = random.Random(14)
    zone = ZoneInfo("UTC")
    for _ in range(400):
        expression = make_expression(rng)
        since = datetime(2020, 1, 1, tzinfo=zone) + timedelta(minutes=rng.randint(0, 20 * 366 * 1440))
        for _ in range(3):
            expected = oracle_next(expression, since)
            assert our_next(expression, since, zone) == expected, (expression, since)
            if expected is None:
                break
            since = expected


@pytest.mark.parametrize("zone_name", ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe"])
def test_fixed_times_on_days_with_a_clock_change_are_the_same_as_in_cronsim(zone_name: str) -> None:
    rng = random.Random(15)
    zone = ZoneInfo(zone_name)
    changes = find_clock_changes(zone)
    assert len(changes) == 4
    for change in changes:
        for _ in range(40):
            hour, minute = rng.randint(0, 4), rng.randint(0, 59)
            expression = f"{minute} {hour} * * *"
            since = change - timedelta(minutes=rng.randint(0, 1500))
            for _ in range(3):
                expected = oracle_next(expression, since)
                assert our_next(expression, since, zone) == expected, (expression, since)
                assert expected is not None
                since = expected


def find_clock_changes(zone: ZoneInfo) -> list[datetime]:
    """Return the local midnights before the clock changes of two years."""
    days = [datetime(2025, 1, 1, tzinfo=zone) + timedelta(days=number) for number in range(730)]
    return [day for day in days if day.utcoffset() != (day + timedelta(days=1)).utcoffset()]


@pytest.mark.parametrize("weekday", range(7))
@pytest.mark.parametrize("year", [2026, 2060, 2088, 2089, 2097, 2180, 2296])
def test_a_29_february_on_a_weekday_is_found_across_a_century_without_a_leap_day(weekday: int, year: int) -> None:
    zone = ZoneInfo("UTC")
    # A weekday that starts with "*" must match together with the day.
    times = CronTimes(parse_cron(f"30 12 29 2 */7,{weekday}"), zone)
    matches = (
        day
        for day in (date(number, 2, 29) for number in range(year, year + 100) if is_leap(number))
        if day.isoweekday() % 7 in (0, weekday)
    )
    expected = datetime.combine(next(matches), datetime.min.time(), UTC) + timedelta(hours=12, minutes=30)
    assert times.next(datetime(year, 1, 1, tzinfo=UTC).timestamp()) == expected.timestamp()


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def test_the_search_covers_the_longest_possible_gap() -> None:
    """The calendar repeats after 400 years, so this checks every gap between two times of any expression."""
    for weekday in range(7):
        days = [date(year, 2, 29) for year in range(2000, 2801) if is_leap(year)]
        matches = [day for day in days if day.isoweekday() % 7 == weekday]
        gaps = [later.year - earlier.year for earlier, later in itertools.pairwise(matches)]
        assert max(gaps) == 40
    for month, day in ((2, 28), (4, 30), (12, 31)):
        for weekday in range(7):
            matches = [year for year in range(2000, 2801) if date(year, month, day).isoweekday() % 7 == weekday]
            assert max(later - earlier for earlier, later in itertools.pairwise(matches)) <= 12


@pytest.mark.parametrize("rule", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2"])
def test_a_rule_that_never_matches_has_no_next_time(rule: str) -> None:
    assert parse_rule(rule, ZoneInfo("UTC")).next(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) is None


def test_a_long_expression_is_parsed_in_linear_time() -> None:
    def parse(expression: str) -> None:
        parse_cron(expression)

    assert_linear(lambda size: ",".join(["0-59/1"] * size) + " * * * *", parse, 1_000)
