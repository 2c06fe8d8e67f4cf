"""One schedule that has come due: what is to be done about it, and that it is done once."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from msgspec import structs

from hark.protocol.clock import Clock
from hark.protocol.commands import Say
from hark.protocol.names import is_same_schedule
from hark.protocol.receipts import QueueItem, ReceiptState
from hark.protocol.schedules import Run, RunState, Schedule, ScheduleBook
from hark.protocol.session import Session
from hark.protocol.store import Store
from hark.schedules.service import IsCommand, say_of, shown_time
from hark.schedules.settings import CatchUp, ScheduleSettings
from hark.schedules.time_zones import zone_of
from hark.schedules.times import moments_of, utc_text

LATE_SECONDS = 60.0
MISSED = "nobody served when its time came"
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScheduleServices:
    """What the runner needs of the agent.

    `notice` shows a text to the readers of a session. `lapses` counts how often this process may have lost its leases.
    """

    book: ScheduleBook
    store: Store
    clock: Clock
    settings: ScheduleSettings
    session: Callable[[str], Session]
    notice: Callable[[str, str], None]
    is_command: IsCommand
    lapses: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Due:
    """A moment of a schedule that has come; `is_late`: nobody served when it did."""

    schedule: Schedule
    at: float
    is_late: bool


def first_of(schedule: Schedule) -> float | None:
    """Return the first moment that is not dealt with, come or to come; None when there is none.

    Raises:
        ScheduleRefused: It can't be read.
    """
    if schedule.is_paused or schedule.is_over:
        return None
    return moments_of(schedule.rule, zone_of(schedule.timezone)).next(schedule.since)


def due_of(schedule: Schedule, now: float) -> Due | None:
    """Return the last moment that has come and is not dealt with; earlier ones are never made good."""
    at = moments_of(schedule.rule, zone_of(schedule.timezone)).last(schedule.since, now)
    return None if at is None else Due(schedule, at, now - at > LATE_SECONDS)


class Firing:
    """Sends what has come due through the session's own door.

    The message is named by schedule and moment, and an inbox takes a name once: whoever sends it again, after a crash
    or beside us, changes nothing. So it is sent first, and noted in the book behind that.
    """

    def __init__(self, services: ScheduleServices) -> None:
        self._services = services
        self._book = services.book
        self._settings = services.settings
        self._clock = services.clock

    async def fire(self, due: Due) -> None:
        """Send it, or note why not.

        Raises:
            StoreError: Nothing is known to be sent; it can be tried again.
        """
        schedule = due.schedule
        say = say_of(schedule, utc_text(due.at))
        note = ""
        if due.is_late:
            if not self._is_made_good(due):
                await self._note(due, Run(due.at, self._clock.now(), RunState.MISSED, note=MISSED))
                return
            note = f"{MISSED}; it is made good once"
        session = self._services.session(schedule.session)
        if self._services.is_command(say.text):
            await self._command(due, session, say, note)
            return
        waiting = await self._waiting(session, say)
        if waiting is not None and waiting.state is not ReceiptState.HELD:
            why = "the one before it still waits"
            await self._note(due, Run(due.at, self._clock.now(), RunState.SKIPPED, note=why))
            self._tell(due, f"was left out: {why}")
            return
        if waiting is not None:
            await session.withdraw(waiting.id)  # a stop holds it; the new one releases what is held
        await session.say(say.text, say.delivery, id=say.id, author=say.author)
        await self._note(due, Run(due.at, self._clock.now(), RunState.SENT, say.id, note=note))
        if note:
            self._tell(due, f"comes now: {note}")

    def _is_made_good(self, due: Due) -> bool:
        age = self._clock.now() - due.at
        return self._settings.catch_up is CatchUp.ONCE and age <= self._settings.grace_seconds

    async def _waiting(self, session: Session, say: Say) -> QueueItem | None:
        """Return another message of the same schedule that waits."""
        items = await session.queue()
        return next((item for item in items if is_same_schedule(say.id, item.id) and item.id != say.id), None)

    async def _command(self, due: Due, session: Session, say: Say, note: str) -> None:
        """Carry a slash command out. No inbox remembers it: it is noted first, so that it is done once at the most."""
        if await self._note(due, Run(due.at, self._clock.now(), RunState.DONE, say.id, note=note)):
            await session.say(say.text, say.delivery, id=say.id, author=say.author)

    async def _note(self, due: Due, run: Run) -> bool:
        """Keep in the book that a moment is dealt with; False when it was already."""
        is_first = False
        schedule = due.schedule
        comes_again = moments_of(schedule.rule, zone_of(schedule.timezone)).next(due.at) is not None
        is_over = schedule.is_once or not comes_again

        def change(schedule: Schedule) -> Schedule:
            nonlocal is_first
            is_first = schedule.since < due.at
            if not is_first:
                return schedule
            return structs.replace(schedule, since=due.at, last=run, is_over=is_over)

        await self._book.change(schedule.name, change)
        if is_first:
            LOG.info("schedule %s: %s %s %s", schedule.name, utc_text(due.at), run.state, run.note)
        return is_first

    def _tell(self, due: Due, what: str) -> None:
        when = shown_time(due.at, due.schedule.timezone)
        self._services.notice(due.schedule.session, f"Schedule {due.schedule.name} of {when} {what}.")
