"""The moments that a rule means: in real time, and across the days on which clocks are changed."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import get_close_matches
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hark.protocol.schedules import ScheduleRefused
from hark.schedules.cron import Cron, read_cron

UTC_NAME = "UTC"
_LINK = Path("/etc/localtime")
_FOLDER = "zoneinfo/"
EVERY = "every "
SEARCHED_DAYS = 366 * 9  # a 29th of February is never farther away


def zone_of(name: str) -> tzinfo:
    """Return a time zone.

    Raises:
        ScheduleRefused: There is none of that name.
    """
    if name == UTC_NAME:
        return UTC  # there even where no zones are installed
    zone = _found(name)
    if zone is not None:
        return zone
    names = sorted(available_timezones())
    if not names:
        raise ScheduleRefused("bad_schedule", "This machine has no time zones: install tzdata, or use UTC.")
    near = get_close_matches(name, names, 1, 0.5) or [one for one in names if name.lower() in one.lower()][:1]
    meant = f" Did you mean {near[0]}?" if near else ""
    words = f'There is no time zone "{name[:100]}".{meant} A zone is named like Europe/Zurich or UTC.'
    raise ScheduleRefused("bad_schedule", words)


def local_zone() -> str:
    """Return the name of this machine's zone; UTC when it can't be told."""
    for name in (os.environ.get("TZ", "").lstrip(":"), _linked()):
        if name and _found(name) is not None:
            return name
    return UTC_NAME


def _linked() -> str:
    try:
        return str(_LINK.resolve()).partition(_FOLDER)[2]
    except (OSError, RuntimeError):
        return ""


def _found(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # no such key, a path that leads out, a folder
        return None


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of a schedule, in Unix time.

    `next(since)` is the first one after `since`, `last(since, now)` the last one after `since` up to `now`; None when
    there is none.
    """

    next: Callable[[float], float | None]
    last: Callable[[float, float], float | None]


def moments_of(rule: str, zone: tzinfo) -> Moments:
    """Return the moments of a rule: an interval counts from `since`, whatever the clocks say.

    Raises:
        ScheduleRefused: It is no rule.
    """
    if rule.startswith(EVERY):
        seconds = int(rule.split()[1])
        return Moments(
            lambda since: since + seconds,
            lambda since, now: since + (now - since) // seconds * seconds if now - since >= seconds else None,
        )
    if rule.endswith("Z"):
        at = datetime.fromisoformat(rule).timestamp()
        return Moments(lambda since: at if at > since else None, lambda since, now: at if since < at <= now else None)
    cron = CronMoments(read_cron(rule), zone)
    return Moments(cron.next, cron.last)


class CronMoments:
    """What cron's fields mean on the clocks of a zone.

    A time that the clocks leave out comes once, at the first moment behind the gap. One that they show twice comes
    once, the first time; only what comes in every hour of the day comes in each of the two.
    """

    def __init__(self, cron: Cron, zone: tzinfo) -> None:
        self._cron = cron
        self._zone = zone

    def next(self, since: float) -> float | None:
        """Return the first moment behind `since`."""
        first = self._day(since) - timedelta(days=1)
        for day in _days(first, SEARCHED_DAYS, 1):
            for moment in self._moments(day):
                if moment > since:
                    return moment
        return None

    def last(self, since: float, now: float) -> float | None:
        """Return the last moment up to `now`, if it is behind `since`."""
        last = self._day(now) + timedelta(days=1)
        searched = min(SEARCHED_DAYS, (last - self._day(since)).days + 2)
        for day in _days(last, searched, -1):
            for moment in reversed(self._moments(day)):
                if moment <= now:
                    return moment if moment > since else None
        return None

    def _day(self, at: float) -> date:
        return datetime.fromtimestamp(at, self._zone).date()

    def _moments(self, day: date) -> list[float]:
        """Return the moments of a day, in order."""
        if not self._cron.is_on(day):
            return []
        found: set[float] = set()
        for hour in self._cron.hours:
            for minute in self._cron.minutes:
                local = datetime(day.year, day.month, day.day, hour, minute)
                found.update(instants(local, self._zone, is_both=self._cron.is_every_hour))
        return sorted(found)


def instants(local: datetime, zone: tzinfo, *, is_both: bool = False) -> tuple[float, ...]:
    """Return when the clocks of a zone show a time: once, at the end of a gap, or twice with `is_both`."""
    first, second = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    if before == after:
        return (first.timestamp(),)
    if before > after:
        return (first.timestamp(), second.timestamp()) if is_both else (first.timestamp(),)
    return (_end_of_gap(second.timestamp(), first.timestamp(), zone),)


def _end_of_gap(early: float, late: float, zone: tzinfo) -> float:
    """Return the second at which the clocks of a zone jump, which is somewhere between these two."""
    low, high = int(early), int(late)
    offset = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return float(high)


def _days(first: date, count: int, step: int) -> Iterator[date]:
    for number in range(count):
        yield first + timedelta(days=number * step)


def utc_text(at: float) -> str:
    """Return a moment as it stands in ids and rules: 2026-11-16T09:00Z, with seconds where there are some."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%Y-%m-%dT%H:%MZ" if not moment.second else "%Y-%m-%dT%H:%M:%SZ")
