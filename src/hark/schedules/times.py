"""Computes the times of a schedule's rule, correctly across daylight saving changes."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import get_close_matches
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hark.protocol.schedules import ScheduleRefused
from hark.schedules.cron import CronExpression, parse_cron

UTC_NAME = "UTC"
_LOCALTIME_FILE = Path("/etc/localtime")
_ZONE_FOLDER = "zoneinfo/"
INTERVAL_PREFIX = "every "
# A 29 February on a given weekday can be 40 years away, because 2100 is not a leap year. No other day is further away.
MAX_SEARCH_DAYS = 366 * 41


def find_zone(name: str) -> tzinfo:
    """Return the time zone with that name.

    Raises:
        ScheduleRefused: The name is unknown.
    """
    if name == UTC_NAME:
        return UTC  # works even if no zones are installed
    zone = _load_zone(name)
    if zone is not None:
        return zone
    names = sorted(available_timezones())
    if not names:
        raise ScheduleRefused("bad_schedule", "No time zones are installed. Install tzdata, or use UTC.")
    near = get_close_matches(name, names, 1, 0.5) or [known for known in names if name.lower() in known.lower()][:1]
    suggestion = f" Did you mean {near[0]}?" if near else ""
    message = f'Unknown time zone "{name[:100]}".{suggestion} Use a name such as Europe/Zurich or UTC.'
    raise ScheduleRefused("bad_schedule", message)


def local_zone_name() -> str:
    """Return the name of this machine's time zone, or UTC if it is unknown."""
    for name in (os.environ.get("TZ", "").lstrip(":"), _localtime_zone_name()):
        if name and _load_zone(name) is not None:
            return name
    return UTC_NAME


def _localtime_zone_name() -> str:
    try:
        return str(_LOCALTIME_FILE.resolve()).partition(_ZONE_FOLDER)[2]
    except (OSError, RuntimeError):
        return ""


def _load_zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown key, path outside of the zone folder, or a folder
        return None


@dataclass(frozen=True, slots=True)
class RuleTimes:
    """The times of a rule, in Unix time.

    `next(since)` is the first time after `since`, and `last(since, now)` the last time after `since` up to `now`.
    Both return None if there is no such time.
    """

    next: Callable[[float], float | None]
    last: Callable[[float, float], float | None]


def parse_rule(rule: str, zone: tzinfo) -> RuleTimes:
    """Return the times of a rule. An interval is counted in elapsed seconds after `since`, whatever the local time.

    Raises:
        ScheduleRefused: The rule is invalid.
    """
    if rule.startswith(INTERVAL_PREFIX):
        seconds = int(rule.split()[1])
        return RuleTimes(
            lambda since: since + seconds,
            lambda since, now: since + (now - since) // seconds * seconds if now - since >= seconds else None,
        )
    if rule.endswith("Z"):
        at = datetime.fromisoformat(rule).timestamp()
        return RuleTimes(lambda since: at if at > since else None, lambda since, now: at if since < at <= now else None)
    cron = CronTimes(parse_cron(rule), zone)
    return RuleTimes(cron.next, cron.last)


class CronTimes:
    """The times of a cron expression in a time zone.

    A local time that a clock change skips runs once, at the end of the gap. A local time that occurs twice runs once,
    at its first occurrence; only an expression that matches every hour runs at both.
    """

    def __init__(self, cron: CronExpression, zone: tzinfo) -> None:
        self._cron = cron
        self._zone = zone

    def next(self, since: float) -> float | None:
        """Return the first time after `since`, or None."""
        first = self._local_date(since) - timedelta(days=1)
        for day in _iterate_days(first, MAX_SEARCH_DAYS, 1):
            for moment in self._times_on(day):
                if moment > since:
                    return moment
        return None

    def last(self, since: float, now: float) -> float | None:
        """Return the last time up to `now` if it is after `since`, else None."""
        last = self._local_date(now) + timedelta(days=1)
        days = min(MAX_SEARCH_DAYS, (last - self._local_date(since)).days + 2)
        for day in _iterate_days(last, days, -1):
            for moment in reversed(self._times_on(day)):
                if moment <= now:
                    return moment if moment > since else None
        return None

    def _local_date(self, at: float) -> date:
        return datetime.fromtimestamp(at, self._zone).date()

    def _times_on(self, day: date) -> list[float]:
        """Return the times on a day, in order."""
        if not self._cron.matches_day(day):
            return []
        times: set[float] = set()
        for hour in self._cron.hours:
            for minute in self._cron.minutes:
                local = datetime(day.year, day.month, day.day, hour, minute)
                times.update(local_timestamps(local, self._zone, with_both=self._cron.is_every_hour))
        return sorted(times)


def local_timestamps(local: datetime, zone: tzinfo, *, with_both: bool = False) -> tuple[float, ...]:
    """Return the Unix time of a local time. A skipped local time yields the end of the gap.

    A local time that occurs twice yields its first occurrence, or both with `with_both`.
    """
    first, second = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    if before == after:
        return (first.timestamp(),)
    if before > after:
        return (first.timestamp(), second.timestamp()) if with_both else (first.timestamp(),)
    return (_find_gap_end(second.timestamp(), first.timestamp(), zone),)


def _find_gap_end(early: float, late: float, zone: tzinfo) -> float:
    """Return the Unix time of the clock change, which is between these two times."""
    low, high = int(early), int(late)
    offset = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return float(high)


def _iterate_days(first: date, count: int, step: int) -> Iterator[date]:
    for number in range(count):
        yield first + timedelta(days=number * step)


def format_utc(at: float) -> str:
    """Format a time for ids and rules, such as 2026-11-16T09:00Z, with seconds if they are not zero."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%Y-%m-%dT%H:%MZ" if not moment.second else "%Y-%m-%dT%H:%M:%SZ")
