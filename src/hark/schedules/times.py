"""The moments that a rule means: in real time, and across the days on which clocks are changed."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol

from hark.schedules.cron import Cron, read_cron

EVERY = "every "
SEARCHED_DAYS = 366 * 9  # a 29th of February is never farther away


class Moments(Protocol):
    """The moments of a schedule, in Unix time."""

    def next(self, since: float) -> float | None:
        """Return the first moment behind `since`; None when there is none."""
        ...

    def last(self, since: float, now: float) -> float | None:
        """Return the last moment behind `since`, up to `now`; None when there is none."""
        ...


def moments_of(rule: str, zone: tzinfo) -> Moments:
    """Return the moments of a rule.

    Raises:
        ScheduleRefused: It is no rule.
    """
    if rule.startswith(EVERY):
        return Interval(int(rule.split()[1]))
    if rule.endswith("Z"):
        return Once(datetime.fromisoformat(rule).timestamp())
    return CronMoments(read_cron(rule), zone)


class Once:
    """One moment."""

    def __init__(self, at: float) -> None:
        self._at = at

    def next(self, since: float) -> float | None:
        """Return it, if it is to come."""
        return self._at if self._at > since else None

    def last(self, since: float, now: float) -> float | None:
        """Return it, if it came."""
        return self._at if since < self._at <= now else None


class Interval:
    """So many seconds behind each other, whatever the clocks say."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def next(self, since: float) -> float | None:
        """Return the moment one interval later."""
        return since + self._seconds

    def last(self, since: float, now: float) -> float | None:
        """Return the last of the moments that came."""
        count = int((now - since) // self._seconds)
        return since + count * self._seconds if count > 0 else None


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
