"""Cron's five fields: which minutes of which days they mean, and what is wrong with those that mean none."""

from dataclasses import dataclass
from datetime import date

from hark.protocol.schedules import ScheduleRefused

EXAMPLE = 'An example: "0 9 * * mon-fri" is 9:00 from Monday to Friday (minute, hour, day, month, weekday).'
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
LONG_WORDS = {word[:3]: word for word in (*_LONG_MONTHS, "november", "december", *_LONG_DAYS)}


@dataclass(frozen=True, slots=True)
class CronField:
    """One of the five: its name, its bounds, and the words that stand for numbers from the lowest on."""

    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()


FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day", 1, 31),
    CronField("month", 1, 12, MONTHS),
    CronField("weekday", 0, 7, WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """The fields as numbers. A weekday is 0 to 6, from Sunday on."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_any_day: bool
    is_any_weekday: bool

    @property
    def is_every_hour(self) -> bool:
        """True when it follows the clock round: then both of two like hours count."""
        return len(self.hours) == 24

    def is_on(self, day: date) -> bool:
        """Tell whether it comes on a day. As in every cron: when day and weekday are both given, either will do."""
        if day.month not in self.months:
            return False
        in_days, in_weekdays = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_any_day or self.is_any_weekday:
            return in_days and in_weekdays
        return in_days or in_weekdays


def read_cron(text: str) -> Cron:
    """Return what an expression means.

    Raises:
        ScheduleRefused: It means nothing.
    """
    parts = text.lower().split()
    if len(parts) != len(FIELDS):
        raise _refused(text, f"it has {len(parts)} {'part' if len(parts) == 1 else 'parts'}, cron has five")
    minutes, hours, days, months, weekdays = (
        _numbers(text, field, part) for field, part in zip(FIELDS, parts, strict=True)
    )
    return Cron(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(number % 7 for number in weekdays),
        parts[2].startswith(("*", "?")),
        parts[4].startswith(("*", "?")),
    )


def _numbers(text: str, field: CronField, part: str) -> set[int]:
    numbers: set[int] = set()
    for piece in part.split(","):
        if not piece:
            raise _refused(text, f'the {field.name} "{part}" has a comma with nothing beside it')
        numbers.update(_piece(text, field, piece))
    return numbers


def _piece(text: str, field: CronField, piece: str) -> range:
    """Return one piece of a list: a number, a range, or either with a step."""
    span, slash, step_word = piece.partition("/")
    step = 1
    if slash:
        if not _is_number(step_word) or int(step_word) == 0:
            raise _refused(text, f'the {field.name} "{piece}" has no step behind its "/": */15 is every fifteenth')
        step = int(step_word)
    if span in ("*", "?"):
        return range(field.least, field.most + 1 if field.most != 7 else 7, step)
    first_word, dash, last_word = span.partition("-")
    first = _number(text, field, first_word)
    if not dash:
        return range(first, field.most + 1 if slash else first + 1, step)
    last = _number(text, field, last_word)
    if field.most == 7 and last == 0:
        last = 7  # a week may end with its Sunday
    if last < first:
        turned = f"{first}-{field.most},{field.least}-{last}"
        raise _refused(text, f'the {field.name} "{span}" ends before it begins; write {turned}')
    return range(first, last + 1, step)


def _number(text: str, field: CronField, word: str) -> int:
    if word[:3] in field.words and word in (word[:3], LONG_WORDS[word[:3]]):
        return field.words.index(word[:3]) + field.least
    between = f"from {field.least} to {field.most}"
    if field.words:
        between += f", or {field.words[0]} to {field.words[-1]}"
    if not _is_number(word) or not field.least <= int(word) <= field.most:
        raise _refused(text, f'the {field.name} "{word}" must be {between}')
    return int(word)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 4


def _refused(text: str, why: str) -> ScheduleRefused:
    return ScheduleRefused("bad_schedule", f'"{text[:100]}" is no time: {why}. {EXAMPLE}')
