"""Parsing of times as users write them: cron, "every 30 minutes", "weekdays at 9:00", "at 18:30", a date."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from hark.protocol.schedules import ScheduleRefused
from hark.schedules.cron import FIELDS, SHORTCUTS, parse_cron
from hark.schedules.times import CronTimes, format_utc, local_timestamps

EXAMPLES = 'Examples: "0 9 * * mon-fri", "every 30 minutes", "weekdays at 9:00", "at 18:30" (once), "2026-12-01 09:00".'
MAX_SECONDS = 366 * 86_400
MAX_YEAR = 2200
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
_NAMED_TIMES = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0)}


@dataclass(frozen=True, slots=True)
class ParsedTime:
    """A parsed schedule time: its rule, and whether it occurs only once."""

    rule: str
    is_once: bool = False


def parse_time(text: str, now: float, zone: tzinfo) -> ParsedTime:
    """Parse a time as users write it.

    Raises:
        ScheduleRefused: The time can't be parsed, never happens, or is in the past.
    """
    phrase = " ".join(text.split())
    lower = phrase.lower()
    if not lower:
        raise ScheduleRefused("bad_schedule", f"The time is missing. {EXAMPLES}")
    if lower.startswith("@"):
        return _parse_shortcut(lower)
    parsed = _parse_interval(lower) or _parse_days(phrase, lower) or _parse_delay(lower, now)
    parsed = parsed or _parse_date(phrase, lower, now, zone) or _parse_time_of_day(phrase, lower, now, zone)
    if parsed is not None:
        return parsed
    if not _is_cron_like(lower):
        raise ScheduleRefused("bad_schedule", f'Cannot parse the time "{phrase[:100]}". {EXAMPLES}')
    if CronTimes(parse_cron(lower), UTC).next(now) is None:
        raise ScheduleRefused("bad_schedule", f'"{phrase}" never happens: no year has such a day. {EXAMPLES}')
    return ParsedTime(lower)


def _is_cron_like(lower: str) -> bool:
    """Return whether the text looks like a cron expression."""
    parts = lower.split()
    return len(parts) >= len(FIELDS) - 1 or "*" in lower or "/" in lower or (len(parts) == 1 and "," in lower)


def _parse_shortcut(lower: str) -> ParsedTime:
    rule = SHORTCUTS.get(lower)
    if rule is None:
        message = f'Unknown shortcut "{lower[:100]}". Use one of {", ".join(SHORTCUTS)}.'
        raise ScheduleRefused("bad_schedule", message)
    return ParsedTime(rule)


def _parse_interval(lower: str) -> ParsedTime | None:
    match = _EVERY.fullmatch(lower)
    if match is None:
        return None
    if match["number"] is None and match["unit"] in ("day", "d", "week"):
        example = "every day at 9:00" if match["unit"] != "week" else "every monday at 9:00"
        raise ScheduleRefused("bad_schedule", f'"{lower}" has no time of day. Write "{example}".')
    return ParsedTime(f"every {_read_seconds(lower, match)} seconds")


def _parse_delay(lower: str, now: float) -> ParsedTime | None:
    match = _IN.fullmatch(lower)
    return _make_single(now + _read_seconds(lower, match)) if match else None


def _read_seconds(lower: str, match: re.Match[str]) -> int:
    unit = next(length for name, length in _UNITS.items() if name.startswith(match["unit"]))
    seconds = int(match["number"] or 1) * unit
    if not 1 <= seconds <= MAX_SECONDS:
        raise ScheduleRefused("bad_schedule", f'"{lower[:100]}" must be between one second and one year. {EXAMPLES}')
    return seconds


def _parse_days(phrase: str, lower: str) -> ParsedTime | None:
    """Parse a daily or weekly time such as "every weekday at 9:00", "mon, wed at 18:30" or "daily at noon"."""
    match = _DAYS_AT.fullmatch(lower)
    if match is None or match["days"] in ("today", "tomorrow"):
        return None
    hour, minute = _parse_clock(phrase, match["clock"])
    days = match["days"].strip()
    field = _DAYS.get(days) or re.sub(r"\s*(?:,|\band\b)\s*|\s+", ",", days.replace(" - ", "-"))
    field = re.sub(r"days?\b", lambda found: found[0].rstrip("s"), field)  # "mondays" becomes "monday"
    rule = f"{minute} {hour} * * {field}"
    try:
        parse_cron(rule)
    except ScheduleRefused:
        raise ScheduleRefused("bad_schedule", f'"{days[:50]}" is not a list of weekdays. {EXAMPLES}') from None
    return ParsedTime(rule)


def _parse_date(phrase: str, lower: str, now: float, zone: tzinfo) -> ParsedTime | None:
    match = _DATE.fullmatch(lower)
    if match is None:
        return None
    day, clock, offset = match.groups()
    if clock is None:
        raise ScheduleRefused("bad_schedule", f'"{phrase}" has no time of day. Write "{day} 09:00".')
    try:
        year, month, number = (int(part) for part in day.split("-"))
        hour, minute, second = (int(part) for part in f"{clock}:00".split(":")[:3])
        local = datetime(year, month, number, hour, minute, second)
        if offset is not None:
            zone = datetime.fromisoformat(f"2000-01-01T00:00{offset.upper()}").tzinfo or zone
    except ValueError as error:
        raise ScheduleRefused("bad_schedule", f'"{phrase}" is not a valid date: {error}. {EXAMPLES}') from error
    if year > MAX_YEAR:
        raise ScheduleRefused("bad_schedule", f'"{phrase}" is too far in the future.')
    return _require_future(phrase, local_timestamps(local, zone)[0], now)


def _parse_time_of_day(phrase: str, lower: str, now: float, zone: tzinfo) -> ParsedTime | None:
    """Parse "at 18:30", "tomorrow at 9:00" or a similar phrase. A time of day alone means its next occurrence."""
    match = _AT.fullmatch(lower)
    is_time = lower.startswith(("at ", "today", "tomorrow")) or _CLOCK.fullmatch(lower) or lower in _NAMED_TIMES
    if match is None or not is_time or (_CLOCK.fullmatch(lower) and lower.isdigit()):
        return None
    hour, minute = _parse_clock(phrase, match["clock"])
    today = datetime.fromtimestamp(now, zone).date()
    moments = {days: _timestamp(today + timedelta(days=days), hour, minute, zone) for days in (0, 1)}
    if match["day"] == "tomorrow":
        return _make_single(moments[1])
    if match["day"] == "today":
        return _require_future(phrase, moments[0], now)
    return _make_single(moments[0] if moments[0] > now else moments[1])


def _timestamp(day: date, hour: int, minute: int, zone: tzinfo) -> float:
    return local_timestamps(datetime(day.year, day.month, day.day, hour, minute), zone)[0]


def _parse_clock(phrase: str, clock: str) -> tuple[int, int]:
    """Parse a time of day such as "18:30", "9", "6.30 pm" or "noon" into hour and minute."""
    if clock in _NAMED_TIMES:
        return _NAMED_TIMES[clock]
    match = _CLOCK.fullmatch(clock)
    if match is None:
        raise ScheduleRefused(
            "bad_schedule", f'In "{phrase[:100]}", "{clock[:50]}" is not a time of day. Write 18:30, 9am or noon.'
        )
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"] and 1 <= hour <= 12:
        hour = hour % 12 + (12 if match["half"] == "pm" else 0)
    elif match["half"]:
        hour = 99
    if hour > 23 or minute > 59:
        raise ScheduleRefused("bad_schedule", f'In "{phrase[:100]}", "{clock}" is not between 0:00 and 23:59.')
    return hour, minute


def _require_future(phrase: str, at: float, now: float) -> ParsedTime:
    if at <= now:
        raise ScheduleRefused("bad_schedule", f'"{phrase}" is in the past: it is {format_utc(now)} now.')
    return _make_single(at)


def _make_single(at: float) -> ParsedTime:
    return ParsedTime(datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), is_once=True)
