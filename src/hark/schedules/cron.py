"""Parsing of cron expressions, with error messages that explain the mistake."""

from dataclasses import dataclass
from datetime import date

from hark.protocol.schedules import ScheduleRefused

EXAMPLE = 'Example: "0 9 * * mon-fri" is 9:00 from Monday to Friday (minute, hour, day, month, weekday).'
SHORTCUTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONG_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october")
_LONG_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
FULL_NAMES = {word[:3]: word for word in (*_LONG_MONTHS, "november", "december", *_LONG_DAYS)}


@dataclass(frozen=True, slots=True)
class CronField:
    """One of the five fields: its name, its bounds, and the names of its values in ascending order."""

    name: str
    minimum: int
    maximum: int
    value_names: tuple[str, ...] = ()


FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day", 1, 31),
    CronField("month", 1, 12, MONTHS),
    CronField("weekday", 0, 7, WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class CronExpression:
    """The five fields as numbers. Weekdays are 0 to 6, starting with Sunday."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_any_day: bool
    is_any_weekday: bool

    @property
    def is_every_hour(self) -> bool:
        """Whether every hour matches. If so, times in a repeated local hour (end of daylight saving) run twice."""
        return len(self.hours) == 24

    def matches_day(self, day: date) -> bool:
        """Return whether a day matches. If day and weekday are both restricted, either one may match, as in cron."""
        if day.month not in self.months:
            return False
        in_days, in_weekdays = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_any_day or self.is_any_weekday:
            return in_days and in_weekdays
        return in_days or in_weekdays


def parse_cron(text: str) -> CronExpression:
    """Parse a cron expression.

    Raises:
        ScheduleRefused: The expression is invalid.
    """
    parts = text.lower().split()
    if len(parts) != len(FIELDS):
        raise _cron_error(text, f"it has {len(parts)} {'field' if len(parts) == 1 else 'fields'}, but cron has five")
    minutes, hours, days, months, weekdays = (
        _parse_field(text, field, part) for field, part in zip(FIELDS, parts, strict=True)
    )
    return CronExpression(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(number % 7 for number in weekdays),
        parts[2].startswith(("*", "?")),
        parts[4].startswith(("*", "?")),
    )


def _parse_field(text: str, field: CronField, part: str) -> set[int]:
    numbers: set[int] = set()
    for piece in part.split(","):
        if not piece:
            raise _cron_error(text, f'the {field.name} "{part}" has an empty list item')
        numbers.update(_parse_list_item(text, field, piece))
    return numbers


def _parse_list_item(text: str, field: CronField, piece: str) -> range:
    """Parse one item of a list: a number, a range, or either with a step."""
    span, slash, step_text = piece.partition("/")
    step = 1
    if slash:
        if not _is_number(step_text) or int(step_text) == 0:
            raise _cron_error(text, f'the {field.name} "{piece}" needs a number after "/", as in */15')
        step = int(step_text)
    if span in ("*", "?"):
        return range(field.minimum, field.maximum + 1 if field.maximum != 7 else 7, step)
    first_text, dash, last_text = span.partition("-")
    first = _parse_number(text, field, first_text)
    if not dash:
        return range(first, field.maximum + 1 if slash else first + 1, step)
    last = _parse_number(text, field, last_text)
    if field.maximum == 7 and last == 0:
        last = 7  # a week may end with Sunday
    if last < first:
        corrected = f"{first}-{field.maximum},{field.minimum}-{last}"
        raise _cron_error(text, f'the {field.name} "{span}" ends before it starts; write {corrected}')
    return range(first, last + 1, step)


def _parse_number(text: str, field: CronField, number_text: str) -> int:
    if number_text[:3] in field.value_names and number_text in (number_text[:3], FULL_NAMES[number_text[:3]]):
        return field.value_names.index(number_text[:3]) + field.minimum
    allowed = f"from {field.minimum} to {field.maximum}"
    if field.value_names:
        allowed += f", or {field.value_names[0]} to {field.value_names[-1]}"
    if not _is_number(number_text) or not field.minimum <= int(number_text) <= field.maximum:
        raise _cron_error(text, f'the {field.name} "{number_text}" must be {allowed}')
    return int(number_text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _cron_error(text: str, reason: str) -> ScheduleRefused:
    return ScheduleRefused("bad_schedule", f'"{text[:100]}" is not a valid cron expression: {reason}. {EXAMPLE}')
