"""Formats schedules as text: one line per schedule, or all details of one schedule."""

from hark.protocol.schedules import Run, ScheduleInfo
from hark.schedules.service import format_time
from hark.text.graphemes import shorten

NO_SCHEDULES = 'There are no schedules. To add one: hark schedule add "0 9 * * mon-fri" "What is new?" --session daily'
MAX_SHOWN_CHARACTERS = 60


def format_line(row: ScheduleInfo) -> str:
    """Format a schedule as one line."""
    prompt = shorten(" ".join(row.prompt.split()), MAX_SHOWN_CHARACTERS)
    return f"{row.name}  [{row.when}]  {format_next(row)}; {format_last(row)}; in {row.session}: {prompt}"


def format_details(row: ScheduleInfo) -> str:
    """Format all details of a schedule, one per line."""
    once = ", once" if row.once else ""
    lines = {
        "name": row.name,
        "when": f"{row.when}{'' if row.rule == row.when else f'  ({row.rule})'}{once}",
        "timezone": row.timezone,
        "session": row.session,
        "delivery": row.delivery,
        "state": format_next(row),
        "last": format_last(row),
        "prompt": row.prompt,
    }
    return "\n".join(f"{name + ':':10}{text}" for name, text in lines.items())


def format_change(action: str, row: ScheduleInfo, stop: str) -> str:
    """Return the confirmation of `remove`, `pause` or `resume`. `stop` is the command that stops a running turn."""
    match action:
        case "remove":
            return f"Removed {row.name}."
        case "pause":
            return f"Paused {row.name}. A running turn continues; {stop} stops it."
        case _:
            return f"Resumed {row.name}: {format_next(row)} ({row.timezone})."


def format_next(row: ScheduleInfo) -> str:
    """Format the next run time, or the reason why there is none."""
    if row.state != "active":
        return row.state
    return f"next {_shorten_time(row.next)}" if row.next else "no further runs"


def format_last(row: ScheduleInfo) -> str:
    """Format the time and the state of the last run."""
    if row.last is None:
        return "not run yet"
    run = row.last
    details = "; ".join(part for part in (run.detail, run.note) if part)
    due = _shorten_time(format_time(run.due, row.timezone))
    return f"last {due} {format_state(run)}{f' ({details})' if details else ''}"


def format_state(run: Run) -> str:
    """Return a run's state as text, such as "limit reached"."""
    return run.state.value.replace("_", " ")


def _shorten_time(iso_time: str) -> str:
    """Format a time for display, such as "2026-11-16 09:00". The time zone is omitted, because users know it."""
    day, _, clock = iso_time.partition("T")
    return f"{day} {clock[:5] if clock[5:8] == ':00' else clock[:8]}"
