"""The moments of a rule, also on the days on which clocks are changed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hark.schedules.times import Moments, moments_of

ZURICH = ZoneInfo("Europe/Zurich")


def at(text: str, zone: ZoneInfo = ZURICH) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def following(rule: str, since: float, count: int, zone: ZoneInfo = ZURICH) -> list[str]:
    """Return the next moments, as the clocks of the zone show them."""
    moments, shown = moments_of(rule, zone), list[str]()
    for _ in range(count):
        found = moments.next(since)
        assert found is not None
        shown.append(datetime.fromtimestamp(found, zone).strftime("%m-%d %H:%M%z"))
        since = found
    return shown


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("0 9 * * mon-fri", ["11-17 09:00+0100", "11-18 09:00+0100", "11-19 09:00+0100", "11-20 09:00+0100"]),
        ("0 9 * * fri-sun", ["11-20 09:00+0100", "11-21 09:00+0100", "11-22 09:00+0100", "11-27 09:00+0100"]),
        ("*/20 12 * * *", ["11-16 12:20+0100", "11-16 12:40+0100", "11-17 12:00+0100", "11-17 12:20+0100"]),
        ("30 18 1 * *", ["12-01 18:30+0100", "01-01 18:30+0100", "02-01 18:30+0100", "03-01 18:30+0100"]),
        ("0 0 29 2 *", ["02-29 00:00+0100", "02-29 00:00+0100"]),
        ("5 4 13 * fri", ["11-20 04:05+0100", "11-27 04:05+0100", "12-04 04:05+0100", "12-11 04:05+0100"]),
        ("5 4 13 * */2", ["12-13 04:05+0100"]),  # a star, even with a step, is no weekday of its own: both must fit
        ("0 12 * jan-feb 7", ["01-03 12:00+0100", "01-10 12:00+0100"]),
        ("10-50/20 6,7 * * *", ["11-17 06:10+0100", "11-17 06:30+0100", "11-17 06:50+0100", "11-17 07:10+0100"]),
    ],
)
def test_cron_means_what_it_means_everywhere(rule: str, expected: list[str]) -> None:
    assert following(rule, at("2026-11-16T12:00"), len(expected)) == expected


def test_a_time_that_the_clocks_leave_out_comes_once_at_the_next_moment() -> None:
    """On 29 March 2026 the clocks of Zurich go from 2:00 to 3:00."""
    assert following("30 2 * * *", at("2026-03-28T00:00"), 3) == [
        "03-28 02:30+0100",
        "03-29 03:00+0200",
        "03-30 02:30+0200",
    ]


def test_all_times_in_the_gap_are_one() -> None:
    assert following("*/15 2-3 * * *", at("2026-03-29T00:00"), 5) == [
        "03-29 03:00+0200",
        "03-29 03:15+0200",
        "03-29 03:30+0200",
        "03-29 03:45+0200",
        "03-30 02:00+0200",
    ]


def test_a_time_that_the_clocks_show_twice_comes_once() -> None:
    """On 25 October 2026 the clocks of Zurich go from 3:00 back to 2:00."""
    assert following("30 2 * * *", at("2026-10-24T00:00"), 3) == [
        "10-24 02:30+0200",
        "10-25 02:30+0200",
        "10-26 02:30+0100",
    ]


def test_what_comes_every_hour_comes_in_both_of_two_like_hours() -> None:
    assert following("0 * * * *", at("2026-10-25T01:00"), 4) == [
        "10-25 02:00+0200",
        "10-25 02:00+0100",
        "10-25 03:00+0100",
        "10-25 04:00+0100",
    ]
    assert following("0 * * * *", at("2026-03-29T01:00"), 2) == ["03-29 03:00+0200", "03-29 04:00+0200"]


def test_a_gap_at_midnight_and_one_of_half_an_hour() -> None:
    cairo = ZoneInfo("Africa/Cairo")  # from midnight to 1:00 on 24 April 2026
    assert following("0 0 * * *", at("2026-04-23T12:00", cairo), 2, cairo) == ["04-24 01:00+0300", "04-25 00:00+0300"]
    howe = ZoneInfo("Australia/Lord_Howe")  # from 2:00 to 2:30 on 4 October 2026
    assert following("15 2 * * *", at("2026-10-03T12:00", howe), 1, howe) == ["10-04 02:30+1100"]


@pytest.mark.parametrize("rule", ["30 2 * * *", "0 * * * *", "*/7 * * * *", "0 0 1 * *", "15 2 * * sun", "59 23 * * *"])
@pytest.mark.parametrize("zone", ["Europe/Zurich", "Australia/Lord_Howe", "America/St_Johns", "UTC"])
def test_the_last_moment_is_the_one_that_going_forward_finds(rule: str, zone: str) -> None:
    moments = moments_of(rule, ZoneInfo(zone))
    for day in ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"):
        now = (datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(hours=13)).timestamp()
        since = now - 40 * 86_400
        assert moments.last(since, now) == _last_by_walking(moments, since, now)
        assert moments.last(now - 1, now - 0.5) is None


def _last_by_walking(moments: Moments, since: float, now: float) -> float | None:
    last: float | None = None
    step: float | None = now - 6 * 3_600 if moments.next(now - 6 * 3_600) is not None else since
    first = moments.next(step)
    step = since if first is None or first > now else step
    while (found := moments.next(step)) is not None and found <= now:
        last = step = found
    return last


def test_an_interval_is_real_time_and_keeps_its_beat() -> None:
    moments = moments_of("every 3600 seconds", ZURICH)
    assert moments.next(1000.0) == 4600.0
    assert moments.last(1000.0, 4599.0) is None
    assert moments.last(1000.0, 1000.0 + 3600 * 5 + 100) == 1000.0 + 3600 * 5


def test_one_moment_comes_once() -> None:
    moments = moments_of("1970-01-01T01:00:00Z", ZURICH)
    assert moments.next(0.0) == 3600.0
    assert moments.next(3600.0) is None
    assert moments.last(0.0, 3599.0) is None
    assert moments.last(0.0, 1e9) == 3600.0
