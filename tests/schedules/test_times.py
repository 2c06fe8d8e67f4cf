"""The due times of a schedule rule, including days with a daylight saving change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hark.schedules.times import RuleTimes, parse_rule

ZURICH = ZoneInfo("Europe/Zurich")


def timestamp(text: str, zone: ZoneInfo = ZURICH) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def next_times(rule: str, since: float, count: int, zone: ZoneInfo = ZURICH) -> list[str]:
    """Return the next `count` due times of a rule, formatted as local times in the zone."""
    times, formatted = parse_rule(rule, zone), list[str]()
    for _ in range(count):
        next_time = times.next(since)
        assert next_time is not None
        formatted.append(datetime.fromtimestamp(next_time, zone).strftime("%m-%d %H:%M%z"))
        since = next_time
    return formatted


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("0 9 * * mon-fri", ["11-17 09:00+0100", "11-18 09:00+0100", "11-19 09:00+0100", "11-20 09:00+0100"]),
        ("0 9 * * fri-sun", ["11-20 09:00+0100", "11-21 09:00+0100", "11-22 09:00+0100", "11-27 09:00+0100"]),
        ("*/20 12 * * *", ["11-16 12:20+0100", "11-16 12:40+0100", "11-17 12:00+0100", "11-17 12:20+0100"]),
        ("30 18 1 * *", ["12-01 18:30+0100", "01-01 18:30+0100", "02-01 18:30+0100", "03-01 18:30+0100"]),
        ("0 0 29 2 *", ["02-29 00:00+0100", "02-29 00:00+0100"]),
        ("5 4 13 * fri", ["11-20 04:05+0100", "11-27 04:05+0100", "12-04 04:05+0100", "12-11 04:05+0100"]),
        # "*" with a step does not count as a restricted weekday, so day and weekday must both match
        ("5 4 13 * */2", ["12-13 04:05+0100"]),
        ("0 12 * jan-feb 7", ["01-03 12:00+0100", "01-10 12:00+0100"]),
        ("10-50/20 6,7 * * *", ["11-17 06:10+0100", "11-17 06:30+0100", "11-17 06:50+0100", "11-17 07:10+0100"]),
    ],
)
def test_cron_expressions_are_interpreted_in_the_standard_way(rule: str, expected: list[str]) -> None:
    assert next_times(rule, timestamp("2026-11-16T12:00"), len(expected)) == expected


def test_a_time_skipped_by_a_dst_change_triggers_one_run_after_the_gap() -> None:
    """On 29 March 2026 the clocks of Zurich change from 2:00 to 3:00."""
    assert next_times("30 2 * * *", timestamp("2026-03-28T00:00"), 3) == [
        "03-28 02:30+0100",
        "03-29 03:00+0200",
        "03-30 02:30+0200",
    ]


def test_several_times_in_the_same_dst_gap_trigger_one_run() -> None:
    assert next_times("*/15 2-3 * * *", timestamp("2026-03-29T00:00"), 5) == [
        "03-29 03:00+0200",
        "03-29 03:15+0200",
        "03-29 03:30+0200",
        "03-29 03:45+0200",
        "03-30 02:00+0200",
    ]


def test_a_local_time_that_occurs_twice_triggers_one_run() -> None:
    """On 25 October 2026 the clocks of Zurich change from 3:00 back to 2:00."""
    assert next_times("30 2 * * *", timestamp("2026-10-24T00:00"), 3) == [
        "10-24 02:30+0200",
        "10-25 02:30+0200",
        "10-26 02:30+0100",
    ]


def test_an_hourly_rule_triggers_a_run_in_both_repeated_hours() -> None:
    assert next_times("0 * * * *", timestamp("2026-10-25T01:00"), 4) == [
        "10-25 02:00+0200",
        "10-25 02:00+0100",
        "10-25 03:00+0100",
        "10-25 04:00+0100",
    ]
    assert next_times("0 * * * *", timestamp("2026-03-29T01:00"), 2) == ["03-29 03:00+0200", "03-29 04:00+0200"]


def test_dst_gaps_at_midnight_and_of_half_an_hour_are_handled() -> None:
    cairo = ZoneInfo("Africa/Cairo")  # from midnight to 1:00 on 24 April 2026
    assert next_times("0 0 * * *", timestamp("2026-04-23T12:00", cairo), 2, cairo) == [
        "04-24 01:00+0300",
        "04-25 00:00+0300",
    ]
    howe = ZoneInfo("Australia/Lord_Howe")  # from 2:00 to 2:30 on 4 October 2026
    assert next_times("15 2 * * *", timestamp("2026-10-03T12:00", howe), 1, howe) == ["10-04 02:30+1100"]


@pytest.mark.parametrize("rule", ["30 2 * * *", "0 * * * *", "*/7 * * * *", "0 0 1 * *", "15 2 * * sun", "59 23 * * *"])
@pytest.mark.parametrize("zone", ["Europe/Zurich", "Australia/Lord_Howe", "America/St_Johns", "UTC"])
def test_the_last_due_time_equals_the_one_found_by_a_forward_search(rule: str, zone: str) -> None:
    times = parse_rule(rule, ZoneInfo(zone))
    for day in ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"):
        now = (datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(hours=13)).timestamp()
        since = now - 40 * 86_400
        assert times.last(since, now) == _search_last_forward(times, since, now)
        assert times.last(now - 1, now - 0.5) is None


def _search_last_forward(times: RuleTimes, since: float, now: float) -> float | None:
    last: float | None = None
    step: float | None = now - 6 * 3_600 if times.next(now - 6 * 3_600) is not None else since
    first = times.next(step)
    step = since if first is None or first > now else step
    while (next_time := times.next(step)) is not None and next_time <= now:
        last = step = next_time
    return last


def test_an_interval_counts_elapsed_seconds_from_its_start() -> None:
    times = parse_rule("every 3600 seconds", ZURICH)
    assert times.next(1000.0) == 4600.0
    assert times.last(1000.0, 4599.0) is None
    assert times.last(1000.0, 1000.0 + 3600 * 5 + 100) == 1000.0 + 3600 * 5


def test_a_one_time_schedule_fires_once() -> None:
    times = parse_rule("1970-01-01T01:00:00Z", ZURICH)
    assert times.next(0.0) == 3600.0
    assert times.next(3600.0) is None
    assert times.last(0.0, 3599.0) is None
    assert times.last(0.0, 1e9) == 3600.0
