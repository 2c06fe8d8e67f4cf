"""Creates, changes and lists schedules, and validates requests."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import assert_never

from msgspec import structs

from hark.protocol.clock import Clock
from hark.protocol.commands import Say
from hark.protocol.names import check_session_name, is_schedule_name, scheduled_id
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.receipts import Receipt
from hark.protocol.records import AnyRecord, Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.schedules import (
    MAX_PROMPT_CHARACTERS,
    Run,
    RunState,
    Schedule,
    ScheduleInfo,
    ScheduleRefused,
    ScheduleRequest,
    ScheduleStore,
)
from hark.protocol.store import Journal
from hark.schedules.settings import ScheduleSettings
from hark.schedules.time_phrases import parse_time
from hark.schedules.times import find_zone, local_zone_name, parse_rule
from hark.text.cleanup import replace_surrogates

MAX_SCHEDULES = 1_000
NAME_WORDS = 4
SendMessage = Callable[[str, Say], Awaitable[Receipt]]
IsCommand = Callable[[str], bool]  # whether a text is a slash command


def update_run(run: Run, records: Sequence[AnyRecord]) -> Run:
    """Return the run with its state updated from these records of its session."""
    for record in records:
        if run.is_over:
            break
        match record:
            case Queued(message=message) if message.id == run.message:
                run = structs.replace(run, state=RunState.WAITING)
            case TurnStarted(turn=turn, messages=messages) | Steered(turn=turn, messages=messages):
                if any(message.id == run.message for message in messages):
                    run = structs.replace(run, state=RunState.RUNNING, turn=turn)
            case Withdrawn(message=message) if message == run.message:
                run = structs.replace(run, state=RunState.WITHDRAWN, detail=record.reason)
            case TurnEnded(turn=turn, outcome=outcome) if turn == run.turn:
                state, detail = _outcome_state(outcome)
                run = structs.replace(run, state=state, detail=detail)
            case _:
                pass
    return run


def _outcome_state(outcome: Outcome) -> tuple[RunState, str]:
    match outcome:
        case Completed():
            return RunState.COMPLETED, ""
        case Interrupted(source=source):
            return RunState.INTERRUPTED, source
        case Failed(error=error):
            return RunState.FAILED, error.message
        case LimitReached(limit=limit):
            return RunState.LIMIT_REACHED, limit
        case _:
            assert_never(outcome)


class ScheduleService:
    """The schedules of a home, for the command line, slash commands and HTTP."""

    def __init__(
        self,
        store: ScheduleStore,
        journal: Journal,
        settings: ScheduleSettings,
        clock: Clock,
        send: SendMessage,
        is_command: IsCommand,
    ) -> None:
        """Create the service. `send` sends a message to a session."""
        self._store = store
        self._journal = journal
        self._settings = settings
        self._clock = clock
        self._send = send
        self._is_command = is_command

    async def all(self) -> list[ScheduleInfo]:
        """Return all schedules, sorted by name."""
        return [await self._make_info(schedule) for schedule in await self._store.all()]

    async def get(self, name: str) -> ScheduleInfo:
        """Return one schedule."""
        return await self._make_info(await self._find(name))

    async def add(self, request: ScheduleRequest) -> ScheduleInfo:
        """Create a schedule."""
        now = self._clock.now()
        timezone = request.timezone or self._settings.timezone or local_zone_name()
        parsed = parse_time(request.when, now, find_zone(timezone))
        prompt = replace_surrogates(request.prompt).strip()
        if not prompt:
            raise ScheduleRefused("bad_schedule", "The prompt is empty. Write the message to send at that time.")
        if len(prompt) > MAX_PROMPT_CHARACTERS:
            raise ScheduleRefused("bad_schedule", f"The prompt is longer than {MAX_PROMPT_CHARACTERS} characters.")
        name = request.name or await self._new_name(prompt)
        if not is_schedule_name(name):
            message = f"{name[:100]!r} is not a valid schedule name. Use 1 to 64 letters, digits and . _ -"
            raise ScheduleRefused("bad_schedule", message)
        schedule = Schedule(
            name=name,
            when=" ".join(request.when.split()),
            rule=parsed.rule,
            prompt=prompt,
            session=_check_session(request.session or name),
            timezone=timezone,
            since=now,
            delivery=request.delivery,
            is_once=parsed.is_once or request.is_once,
        )
        match await self._store.add(schedule, MAX_SCHEDULES):
            case "exists":
                raise ScheduleRefused(
                    "exists", f"A schedule named {name} already exists. Remove it, or choose another name."
                )
            case "full":
                raise ScheduleRefused("full", f"The limit of {MAX_SCHEDULES} schedules is reached. Remove some.")
            case _:
                return await self._make_info(schedule)

    async def pause(self, name: str) -> ScheduleInfo:
        """Pause a schedule until it is resumed."""
        return await self._change(name, lambda schedule: structs.replace(schedule, is_paused=True))

    async def resume(self, name: str) -> ScheduleInfo:
        """Resume a schedule. Times that passed during the pause are not caught up."""
        now = self._clock.now()

        def change(schedule: Schedule) -> Schedule:
            if not schedule.is_paused:
                return schedule
            return structs.replace(schedule, is_paused=False, since=max(schedule.since, now))

        schedule = await self._find(name)
        since = max(schedule.since, now) if schedule.is_paused else schedule.since
        if schedule.is_over or parse_rule(schedule.rule, find_zone(schedule.timezone)).next(since) is None:
            raise ScheduleRefused("over", f"{name} has ended. Add a new schedule with another time.")
        return await self._change(name, change)

    async def remove(self, name: str) -> ScheduleInfo:
        """Delete a schedule."""
        removed = await self._store.remove(name)
        if removed is None:
            raise _unknown_schedule(name)
        return await self._make_info(removed)

    async def run(self, name: str) -> Receipt:
        """Send the schedule's prompt immediately."""
        schedule = await self._find(name)
        now = self._clock.now()
        say = make_message(schedule, f"run-{self._clock.new_id()}")
        receipt = await self._send(schedule.session, say)
        # A slash command is finished when it has been sent: it starts no turn.
        state = RunState.DONE if self._is_command(say.text) else RunState.SENT
        run = Run(now, now, state, say.id, note="run manually")
        await self._store.change(name, lambda schedule: structs.replace(schedule, last=run))
        return receipt

    async def _find(self, name: str) -> Schedule:
        found = next((schedule for schedule in await self._store.all() if schedule.name == name), None)
        if found is None:
            raise _unknown_schedule(name)
        return found

    async def _change(self, name: str, change: Callable[[Schedule], Schedule]) -> ScheduleInfo:
        changed = await self._store.change(name, change)
        if changed is None:
            raise _unknown_schedule(name)
        return await self._make_info(changed)

    async def _new_name(self, prompt: str) -> str:
        """Return an unused name, made of the prompt's first words."""
        words = re.findall(r"[A-Za-z0-9]+", prompt.lower())[:NAME_WORDS]
        name = "-".join(words)[:40].strip("-") or "schedule"
        used = {schedule.name for schedule in await self._store.all()}
        numbered = (f"{name}-{number}" for number in range(2, len(used) + 3))
        return next(free for free in (name, *numbered) if free not in used)

    async def _make_info(self, schedule: Schedule) -> ScheduleInfo:
        last = schedule.last
        if last is not None and not last.is_over:
            last = update_run(last, await self._journal.read(schedule.session))
        next_at = next_run_time(schedule, self._clock.now())
        state = "over" if schedule.is_over else "paused" if schedule.is_paused else "active"
        return ScheduleInfo(
            name=schedule.name,
            when=schedule.when,
            rule=schedule.rule,
            prompt=schedule.prompt,
            session=schedule.session,
            timezone=schedule.timezone,
            delivery=schedule.delivery,
            once=schedule.is_once,
            state=state,
            next_at=next_at,
            next=None if next_at is None else format_time(next_at, schedule.timezone),
            last=last,
        )


def next_run_time(schedule: Schedule, now: float) -> float | None:
    """Return the next run time, or None if the schedule is paused or over. Missed times are skipped."""
    if schedule.is_paused or schedule.is_over:
        return None
    moments = parse_rule(schedule.rule, find_zone(schedule.timezone))
    missed = moments.last(schedule.since, now)
    return moments.next(schedule.since) if missed is None else moments.next(missed) or missed


def make_message(schedule: Schedule, run_name: str) -> Say:
    """Return the message that a schedule sends. The same `run_name` yields the same message id."""
    return Say(scheduled_id(schedule.name, run_name), schedule.prompt, schedule.delivery, f"schedule {schedule.name}")


def format_time(at: float, timezone: str) -> str:
    """Format a time in a time zone as ISO 8601 with seconds."""
    return datetime.fromtimestamp(at, find_zone(timezone)).isoformat(timespec="seconds")


def _check_session(name: str) -> str:
    try:
        return check_session_name(name)
    except ValueError as error:
        raise ScheduleRefused("bad_schedule", str(error)) from error


def _unknown_schedule(name: str) -> ScheduleRefused:
    return ScheduleRefused("unknown", f"No schedule named {name[:100]!r}. `hark schedule list` lists them.")
