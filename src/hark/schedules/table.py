"""Schedules as people read them: a line each, or one with all there is to it."""

from hark.protocol.schedules import Run, RunState, ScheduleRow
from hark.schedules.service import shown_time

NOTHING = (
    'There are no schedules. One is added like this: hark schedule add "0 9 * * mon-fri" "What is new?" --session daily'
)
PROMPT_CHARACTERS = 60

_WORDS = {
    RunState.SENT: "sent",
    RunState.WAITING: "waits",
    RunState.RUNNING: "runs",
    RunState.LIMIT_REACHED: "limit reached",
    RunState.SKIPPED: "left out",
}


def line_of(row: ScheduleRow) -> str:
    """Return a schedule in one line."""
    prompt = " ".join(row.prompt.split())
    if len(prompt) > PROMPT_CHARACTERS:
        prompt = f"{prompt[: PROMPT_CHARACTERS - 1]}…"
    return f"{row.name}  [{row.when}]  {next_words(row)}; {last_words(row)}; in {row.session}: {prompt}"


def told(row: ScheduleRow) -> str:
    """Return all there is to a schedule, a line each."""
    once = ", once" if row.once else ""
    lines = {
        "name": row.name,
        "when": f"{row.when}{'' if row.rule == row.when else f'  ({row.rule})'}{once}",
        "timezone": row.timezone,
        "session": row.session,
        "delivery": row.delivery,
        "state": next_words(row),
        "last": last_words(row),
        "prompt": row.prompt,
    }
    return "\n".join(f"{name + ':':10}{text}" for name, text in lines.items())


def change_words(action: str, row: ScheduleRow, stop: str) -> str:
    """Return what a user reads after `remove`, `pause` or `resume`; `stop` is the command that stops a running turn."""
    match action:
        case "remove":
            return f"{row.name} is removed."
        case "pause":
            return f"{row.name} is paused. What runs of it goes on: {stop} stops that."
        case _:
            return f"{row.name} comes again, {next_words(row)} ({row.timezone})."


def next_words(row: ScheduleRow) -> str:
    """Return when it comes next, or why it does not."""
    if row.state != "active":
        return row.state
    return f"next {_short(row.next)}" if row.next else "comes no more"


def last_words(row: ScheduleRow) -> str:
    """Return when it last came, and what became of that."""
    if row.last is None:
        return "has not come yet"
    run = row.last
    more = "; ".join(part for part in (run.detail, run.note) if part)
    return f"last {_short(shown_time(run.due, row.timezone))} {state_words(run)}{f' ({more})' if more else ''}"


def state_words(run: Run) -> str:
    """Return how a run stands, in a word or two."""
    return _WORDS.get(run.state, run.state.value)


def _short(moment: str) -> str:
    """Return 2026-11-16 09:00 of 2026-11-16T09:00:00+01:00; the zone is known."""
    day, _, clock = moment.partition("T")
    return f"{day} {clock[:5] if clock[5:8] == ':00' else clock[:8]}"
