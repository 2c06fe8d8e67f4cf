"""What people write when they mean a time: cron, "every 30 minutes", "weekdays at 9:00", "at 18:30", a date."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from hark.protocol.schedules import ScheduleRefused
from hark.schedules.cron import FIELDS, SHORTCUTS, read_cron
from hark.schedules.times import CronMoments, instants, utc_text

EXAMPLES = 'Examples: "0 9 * * mon-fri", "every 30 minutes", "weekdays at 9:00", "at 18:30" (once), "2026-12-01 09:00".'
MOST_SECONDS = 366 * 86_400
MOST_YEAR = 2200
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_UNIT = r"(?P<unit>second|sec|minute|min|hour|day|week|[smhd])s?"
_NUMBER = r"(?P<number>\d{1,9})?"
_TIME = r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?\s*(?P<half>am|pm)?"
_CLOCK = re.compile(_TIME)
_EVERY = re.compile(rf"every\s*{_NUMBER}\s*{_UNIT}")
_IN = re.compile(rf"in\s*{_NUMBER}\s*{_UNIT}")
_DAYS_AT = re.compile(r"(?:every\s+|each\s+|on\s+)?(?P<days>[a-z, -]+?)\s+at\s+(?P<clock>.+)")
_AT = re.compile(r"(?:(?P<day>today|tomorrow)\s+)?(?:at\s+)?(?P<clock>.+)")
_DATE = re.compile(
    r"(?:at\s+|on\s+)?(\d{4}-\d{1,2}-\d{1,2})(?:[t ]\s*(?:at\s+)?(\d{1,2}:\d\d(?::\d\d)?))?\s*(z|[+-]\d\d:?\d\d)?"
)
_DAYS = {
    **dict.fromkeys(("day", "days", "daily"), "*"),
    **dict.fromkeys(("weekday", "weekdays"), "mon-fri"),
    **dict.fromkeys(("weekend", "weekends"), "sat,sun"),
}
_NAMED = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0)}


@dataclass(frozen=True, slots=True)
class Meant:
    """What was meant: the rule, and whether it comes only once."""

    rule: str
    is_once: bool = False


def read_when(text: str, now: float, zone: tzinfo) -> Meant:
    """Return what a person means by a time.

    Raises:
        ScheduleRefused: It can't be understood, never comes, or is over.
    """
    words = " ".join(text.split())
    lower = words.lower()
    if not lower:
        raise ScheduleRefused("bad_schedule", f"No time is given. {EXAMPLES}")
    if lower.startswith("@"):
        return _shortcut(lower)
    meant = _every(lower) or _days_at(words, lower) or _in(lower, now) or _date(words, lower, now, zone)
    meant = meant or _at(words, lower, now, zone)
    if meant is not None:
        return meant
    if not _is_like_cron(lower):
        raise ScheduleRefused("bad_schedule", f'"{words[:100]}" is no time that can be understood. {EXAMPLES}')
    if CronMoments(read_cron(lower), UTC).next(now) is None:
        raise ScheduleRefused("bad_schedule", f'"{words}" never comes: there is no such day in any year. {EXAMPLES}')
    return Meant(lower)


def _is_like_cron(lower: str) -> bool:
    """Tell whether somebody may have tried to write cron's fields."""
    parts = lower.split()
    return len(parts) >= len(FIELDS) - 1 or any(sign in lower for sign in "*/") or (len(parts) == 1 and "," in lower)


def _shortcut(lower: str) -> Meant:
    rule = SHORTCUTS.get(lower)
    if rule is None:
        words = f'There is no "{lower[:100]}". There are: {", ".join(SHORTCUTS)}.'
        raise ScheduleRefused("bad_schedule", words)
    return Meant(rule)


def _every(lower: str) -> Meant | None:
    match = _EVERY.fullmatch(lower)
    if match is None:
        return None
    if match["number"] is None and match["unit"] in ("day", "d", "week"):
        example = "every day at 9:00" if match["unit"] != "week" else "every monday at 9:00"
        raise ScheduleRefused("bad_schedule", f'"{lower}" says no time of day. Write "{example}".')
    return Meant(f"every {_seconds(lower, match)} seconds")


def _in(lower: str, now: float) -> Meant | None:
    match = _IN.fullmatch(lower)
    return _once(now + _seconds(lower, match)) if match else None


def _seconds(lower: str, match: re.Match[str]) -> int:
    unit = next(length for name, length in _UNITS.items() if name.startswith(match["unit"]))
    seconds = int(match["number"] or 1) * unit
    if not 1 <= seconds <= MOST_SECONDS:
        raise ScheduleRefused("bad_schedule", f'"{lower[:100]}" must be from a second to a year. {EXAMPLES}')
    return seconds


def _days_at(words: str, lower: str) -> Meant | None:
    """Read "every weekday at 9:00", "mon, wed at 18:30", "daily at noon"."""
    match = _DAYS_AT.fullmatch(lower)
    if match is None or match["days"] in ("today", "tomorrow"):
        return None
    hour, minute = _clock(words, match["clock"])
    days = match["days"].strip()
    field = _DAYS.get(days) or re.sub(r"\s*(?:,|\band\b)\s*|\s+", ",", days.replace(" - ", "-"))
    field = re.sub(r"days?\b", lambda found: found[0].rstrip("s"), field)  # mondays
    rule = f"{minute} {hour} * * {field}"
    try:
        read_cron(rule)
    except ScheduleRefused:
        raise ScheduleRefused("bad_schedule", f'"{words[:100]}" names no days: "{days[:50]}". {EXAMPLES}') from None
    return Meant(rule)


def _date(words: str, lower: str, now: float, zone: tzinfo) -> Meant | None:
    match = _DATE.fullmatch(lower)
    if match is None:
        return None
    day, clock, offset = match.groups()
    if clock is None:
        raise ScheduleRefused("bad_schedule", f'"{words}" says no time of day. Write "{day} 09:00".')
    try:
        year, month, number = (int(part) for part in day.split("-"))
        hour, minute, second = (int(part) for part in f"{clock}:00".split(":")[:3])
        local = datetime(year, month, number, hour, minute, second)
        if offset is not None:
            zone = datetime.fromisoformat(f"2000-01-01T00:00{offset.upper()}").tzinfo or zone
    except ValueError as error:
        raise ScheduleRefused("bad_schedule", f'"{words}" is no date and time: {error}. {EXAMPLES}') from error
    if year > MOST_YEAR:
        raise ScheduleRefused("bad_schedule", f'"{words}" is too far away.')
    return _to_come(words, instants(local, zone)[0], now)


def _at(words: str, lower: str, now: float, zone: tzinfo) -> Meant | None:
    """Read "at 18:30", "tomorrow at 9:00", or a bare time of day: the next time that clocks show it."""
    match = _AT.fullmatch(lower)
    is_time = lower.startswith(("at ", "today", "tomorrow")) or _CLOCK.fullmatch(lower) or lower in _NAMED
    if match is None or not is_time or (_CLOCK.fullmatch(lower) and lower.isdigit()):
        return None
    hour, minute = _clock(words, match["clock"])
    today = datetime.fromtimestamp(now, zone).date()
    moments = {days: _shown(today + timedelta(days=days), hour, minute, zone) for days in (0, 1)}
    if match["day"] == "tomorrow":
        return _once(moments[1])
    if match["day"] == "today":
        return _to_come(words, moments[0], now)
    return _once(moments[0] if moments[0] > now else moments[1])


def _shown(day: date, hour: int, minute: int, zone: tzinfo) -> float:
    return instants(datetime(day.year, day.month, day.day, hour, minute), zone)[0]


def _clock(words: str, clock: str) -> tuple[int, int]:
    """Return the hour and minute of "18:30", "9", "6.30 pm" or "noon"."""
    if clock in _NAMED:
        return _NAMED[clock]
    match = _CLOCK.fullmatch(clock)
    if match is None:
        raise ScheduleRefused(
            "bad_schedule", f'In "{words[:100]}", "{clock[:50]}" is no time of day: write 18:30, 9am or noon.'
        )
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"] and 1 <= hour <= 12:
        hour = hour % 12 + (12 if match["half"] == "pm" else 0)
    elif match["half"]:
        hour = 99
    if hour > 23 or minute > 59:
        raise ScheduleRefused("bad_schedule", f'In "{words[:100]}", no clock shows "{clock}": the day ends at 23:59.')
    return hour, minute


def _to_come(words: str, at: float, now: float) -> Meant:
    if at <= now:
        raise ScheduleRefused("bad_schedule", f'"{words}" is over: it is {utc_text(now)} now. Give a time to come.')
    return _once(at)


def _once(at: float) -> Meant:
    return Meant(datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), is_once=True)
