"""The desk for schedules: checks what a person wants, and keeps it in the book."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import assert_never

from msgspec import structs

from hark.protocol.clock import Clock
from hark.protocol.commands import Say
from hark.protocol.names import check_name, is_schedule_name, scheduled_id
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached, Outcome
from hark.protocol.receipts import Receipt
from hark.protocol.records import AnyRecord, Queued, Steered, TurnEnded, TurnStarted, Withdrawn
from hark.protocol.schedules import (
    MOST_PROMPT,
    Run,
    RunState,
    Schedule,
    ScheduleBook,
    ScheduleOrder,
    ScheduleRefused,
    ScheduleRow,
)
from hark.protocol.store import Journal
from hark.schedules.settings import ScheduleSettings
from hark.schedules.time_phrases import read_when
from hark.schedules.times import local_zone, moments_of, zone_of
from hark.text.clean import clean

MOST_SCHEDULES = 1_000
NAME_WORDS = 4
SayTo = Callable[[str, Say], Awaitable[Receipt]]
IsCommand = Callable[[str], bool]  # whether a text is a slash command


def progressed(run: Run, records: Sequence[AnyRecord]) -> Run:
    """Return the run as it stands behind these records of its session."""
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
                state, detail = _ended(outcome)
                run = structs.replace(run, state=state, detail=detail)
            case _:
                pass
    return run


def _ended(outcome: Outcome) -> tuple[RunState, str]:
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


class ScheduleDesk:
    """The schedules of a home, as command line, slash command and HTTP use them."""

    def __init__(
        self,
        book: ScheduleBook,
        journal: Journal,
        settings: ScheduleSettings,
        clock: Clock,
        say: SayTo,
        is_command: IsCommand,
    ) -> None:
        """`say` puts a message into a session."""
        self._book = book
        self._journal = journal
        self._settings = settings
        self._clock = clock
        self._say = say
        self._is_command = is_command

    async def rows(self) -> list[ScheduleRow]:
        """Return them all, by name."""
        return [await self._row(schedule) for schedule in await self._book.all()]

    async def row(self, name: str) -> ScheduleRow:
        """Return one."""
        return await self._row(await self._find(name))

    async def add(self, order: ScheduleOrder) -> ScheduleRow:
        """Keep a new one."""
        now = self._clock.now()
        timezone = order.timezone or self._settings.timezone or local_zone()
        meant = read_when(order.when, now, zone_of(timezone))
        prompt = clean(order.prompt).strip()
        if not prompt:
            raise ScheduleRefused("bad_schedule", "There is no prompt: say what is to be done at that time.")
        if len(prompt) > MOST_PROMPT:
            raise ScheduleRefused("bad_schedule", f"The prompt is longer than {MOST_PROMPT} characters.")
        name = order.name or await self._new_name(prompt)
        if not is_schedule_name(name):
            words = f"{name[:100]!r} can't name a schedule: use 1 to 64 letters, digits and . _ -"
            raise ScheduleRefused("bad_schedule", words)
        schedule = Schedule(
            name=name,
            when=" ".join(order.when.split()),
            rule=meant.rule,
            prompt=prompt,
            session=_session(order.session or name),
            timezone=timezone,
            since=now,
            delivery=order.delivery,
            is_once=meant.is_once or order.is_once,
        )
        match await self._book.add(schedule, MOST_SCHEDULES):
            case "exists":
                raise ScheduleRefused(
                    "exists", f"There is a schedule {name} already. Remove it, or choose another name."
                )
            case "full":
                raise ScheduleRefused(
                    "full", f"There are {MOST_SCHEDULES} schedules, the most there may be: remove some."
                )
            case _:
                return await self._row(schedule)

    async def pause(self, name: str) -> ScheduleRow:
        """Have it send nothing until it is resumed."""
        return await self._change(name, lambda schedule: structs.replace(schedule, is_paused=True))

    async def resume(self, name: str) -> ScheduleRow:
        """Have it send again; what came while it was paused is not made good."""
        now = self._clock.now()

        def change(schedule: Schedule) -> Schedule:
            if not schedule.is_paused:
                return schedule
            return structs.replace(schedule, is_paused=False, since=max(schedule.since, now))

        schedule = await self._find(name)
        since = max(schedule.since, now) if schedule.is_paused else schedule.since
        if schedule.is_over or moments_of(schedule.rule, zone_of(schedule.timezone)).next(since) is None:
            raise ScheduleRefused("over", f"{name} comes no more: its time is over. Add it anew with another time.")
        return await self._change(name, change)

    async def remove(self, name: str) -> ScheduleRow:
        """Forget it."""
        removed = await self._book.remove(name)
        if removed is None:
            raise _unknown(name)
        return await self._row(removed)

    async def run(self, name: str) -> Receipt:
        """Say its prompt now."""
        schedule = await self._find(name)
        now = self._clock.now()
        say = say_of(schedule, f"run-{self._clock.new_id()}")
        receipt = await self._say(schedule.session, say)
        # A slash command is done when it is said: it is no turn.
        state = RunState.DONE if self._is_command(say.text) else RunState.SENT
        run = Run(now, now, state, say.id, note="run by hand")
        await self._book.change(name, lambda schedule: structs.replace(schedule, last=run))
        return receipt

    async def _find(self, name: str) -> Schedule:
        found = next((schedule for schedule in await self._book.all() if schedule.name == name), None)
        if found is None:
            raise _unknown(name)
        return found

    async def _change(self, name: str, change: Callable[[Schedule], Schedule]) -> ScheduleRow:
        changed = await self._book.change(name, change)
        if changed is None:
            raise _unknown(name)
        return await self._row(changed)

    async def _new_name(self, prompt: str) -> str:
        """Return a name made of the prompt's first words that no schedule has."""
        words = re.findall(r"[A-Za-z0-9]+", prompt.lower())[:NAME_WORDS]
        name = "-".join(words)[:40].strip("-") or "schedule"
        taken = {schedule.name for schedule in await self._book.all()}
        numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
        return next(free for free in (name, *numbered) if free not in taken)

    async def _row(self, schedule: Schedule) -> ScheduleRow:
        last = schedule.last
        if last is not None and not last.is_over:
            last = progressed(last, await self._journal.read(schedule.session))
        next_at = next_of(schedule, self._clock.now())
        state = "over" if schedule.is_over else "paused" if schedule.is_paused else "active"
        return ScheduleRow(
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
            next=None if next_at is None else shown_time(next_at, schedule.timezone),
            last=last,
        )


def next_of(schedule: Schedule, now: float) -> float | None:
    """Return when a schedule comes next, a time that nobody served left out; None when it is paused or over."""
    if schedule.is_paused or schedule.is_over:
        return None
    moments = moments_of(schedule.rule, zone_of(schedule.timezone))
    missed = moments.last(schedule.since, now)
    return moments.next(schedule.since) if missed is None else moments.next(missed) or missed


def say_of(schedule: Schedule, moment: str) -> Say:
    """Return the message that a schedule sends; the same moment is the same message, however often it is sent."""
    return Say(scheduled_id(schedule.name, moment), schedule.prompt, schedule.delivery, f"schedule {schedule.name}")


def shown_time(at: float, timezone: str) -> str:
    """Return a moment on the clocks of a zone, as people and programs read it."""
    return datetime.fromtimestamp(at, zone_of(timezone)).isoformat(timespec="seconds")


def _session(name: str) -> str:
    try:
        return check_name(name)
    except ValueError as error:
        raise ScheduleRefused("bad_schedule", str(error)) from error


def _unknown(name: str) -> ScheduleRefused:
    return ScheduleRefused("unknown", f"There is no schedule {name[:100]!r}; `hark schedule list` shows what there is.")
