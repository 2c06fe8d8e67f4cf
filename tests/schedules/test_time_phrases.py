"""Time phrases as users write them: the rules they are parsed into, and the errors for invalid phrases."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from hark.protocol.schedules import ScheduleRefused
from hark.schedules.time_phrases import parse_time

ZURICH = ZoneInfo("Europe/Zurich")
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=ZURICH).timestamp()  # a Monday


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0 9 * * mon-fri", "0 9 * * mon-fri"),
        ("  0   9 * * MON-FRI ", "0 9 * * mon-fri"),
        ("@daily", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("every 30 minutes", "every 1800 seconds"),
        ("every 5 min", "every 300 seconds"),
        ("every 90s", "every 90 seconds"),
        ("every hour", "every 3600 seconds"),
        ("Every 2 hours", "every 7200 seconds"),
        ("every 2 weeks", "every 1209600 seconds"),
        ("every day at 9:00", "0 9 * * *"),
        ("daily at noon", "0 12 * * *"),
        ("every weekday at 9am", "0 9 * * mon-fri"),
        ("weekends at 10", "0 10 * * sat,sun"),
        ("every monday at 6:30 pm", "30 18 * * monday"),
        ("mondays at 8", "0 8 * * monday"),
        ("mon, wed and fri at 18.30", "30 18 * * mon,wed,fri"),
        ("mon-thu at midnight", "0 0 * * mon-thu"),
    ],
)
def test_phrases_for_repeating_times_are_parsed_into_rules(text: str, rule: str) -> None:
    parsed = parse_time(text, NOW, ZURICH)
    assert (parsed.rule, parsed.is_once) == (rule, False)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("at 18:30", "2026-11-16T17:30:00Z"),
        ("at 9:00", "2026-11-17T08:00:00Z"),
        ("18:30", "2026-11-16T17:30:00Z"),
        ("noon", "2026-11-17T11:00:00Z"),
        ("tomorrow at 18:30", "2026-11-17T17:30:00Z"),
        ("today at 6 pm", "2026-11-16T17:00:00Z"),
        ("in 20 minutes", "2026-11-16T11:20:00Z"),
        ("in 1 hour", "2026-11-16T12:00:00Z"),
        ("2026-12-01 09:00", "2026-12-01T08:00:00Z"),
        ("2026-12-01T09:00:30", "2026-12-01T08:00:30Z"),
        ("at 2026-12-01 at 9:00", "2026-12-01T08:00:00Z"),
        ("2026-12-01T09:00Z", "2026-12-01T09:00:00Z"),
        ("2026-12-01T09:00+05:00", "2026-12-01T04:00:00Z"),
        ("2026-07-01 09:00", None),
    ],
)
def test_phrases_for_one_time_schedules_are_parsed_into_utc_times(text: str, moment: str | None) -> None:
    if moment is None:
        with pytest.raises(ScheduleRefused, match="is in the past"):
            parse_time(text, NOW, ZURICH)
        return
    parsed = parse_time(text, NOW, ZURICH)
    assert (parsed.rule, parsed.is_once) == (moment, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The time is missing"),
        ("soon", 'Cannot parse the time "soon". Examples:'),
        ("5", 'Cannot parse the time "5"'),
        ("* * * *", "it has 4 fields, but cron has five"),
        ("0 0 9 * * mon", "it has 6 fields, but cron has five"),
        ("61 * * * *", 'the minute "61" must be from 0 to 59'),
        ("0 25 * * *", 'the hour "25" must be from 0 to 23'),
        ("0 9 0 * *", 'the day "0" must be from 1 to 31'),
        ("0 9 * 13 *", 'the month "13" must be from 1 to 12, or jan to dec'),
        ("0 9 * * mon-fry", 'the weekday "fry" must be from 0 to 7, or sun to sat'),
        ("0 22-2 * * *", 'the hour "22-2" ends before it starts; write 22-23,0-2'),
        ("*/0 * * * *", 'the minute "*/0" needs a number after "/"'),
        ("*/x * * * *", 'the minute "*/x" needs a number after "/"'),
        ("1,,2 * * * *", 'the minute "1,,2" has an empty list item'),
        ("0 0 31 2 *", "never happens"),
        ("@reboot", "Use one of @hourly, @daily"),
        ("every day", 'Write "every day at 9:00"'),
        ("every week", 'Write "every monday at 9:00"'),
        ("every 0 minutes", "between one second and one year"),
        ("every 999999999 weeks", "between one second and one year"),
        ("every blue moon at 9:00", '"blue moon" is not a list of weekdays'),
        ("every day at 25:00", '"25:00" is not between 0:00 and 23:59'),
        ("every day at 13pm", '"13pm" is not between 0:00 and 23:59'),
        ("every day at dawn", '"dawn" is not a time of day'),
        ("2026-12-01", "has no time of day"),
        ("2026-02-30 09:00", "is not a valid date: day is out of range for month"),
        ("2020-01-01 09:00", "is in the past"),
        ("9999-01-01 09:00", "too far in the future"),
        ("today at 9:00", "is in the past"),
    ],
)
def test_an_invalid_time_phrase_is_refused_with_an_explanation(text: str, message: str) -> None:
    with pytest.raises(ScheduleRefused) as refused:
        parse_time(text, NOW, ZURICH)
    assert message in str(refused.value)


def test_a_time_of_day_in_utc_needs_no_time_zone_database() -> None:
    assert parse_time("at 18:30", NOW, UTC).rule == "2026-11-16T18:30:00Z"
