"""The runner of schedules in `hark serve`: one for a home, however many processes serve it."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio
from msgspec import structs

from hark.protocol.clock import Clock
from hark.protocol.commands import Say
from hark.protocol.names import SCHEDULER, is_same_schedule
from hark.protocol.receipts import QueueItem, ReceiptState
from hark.protocol.schedules import Run, RunState, Schedule, ScheduleBook, ScheduleRefused
from hark.protocol.session import Session
from hark.protocol.store import Lease, Store, StoreError
from hark.schedules.service import IsCommand, progressed, say_of, shown_time
from hark.schedules.settings import CatchUp, ScheduleSettings
from hark.schedules.times import moments_of, utc_text, zone_of

LATE_SECONDS = 60.0
MISSED = "nobody served when its time came"
LOG = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
FIRE_SECONDS = 10.0
FORGET_SECONDS = 7 * 86_400.0  # what is over for good is shown for so long


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


class ScheduleRunner:
    """Looks at the clock every second: it may be set, and the machine may have slept.

    Being the only one saves work and keeps the notes straight; it is not needed for truth, as a message is taken once.
    """

    def __init__(self, services: ScheduleServices) -> None:
        self._store = services.store
        self._book = services.book
        self._clock = services.clock
        self._current_lapses = services.lapses
        self._firing = Firing(services)
        self._lease: Lease | None = None
        self._lapses = 0
        self._read: dict[str, int] = {}  # how many records of its session are read, by the message of a run
        self._next: dict[str, tuple[Schedule, float | None]] = {}  # when each comes next, as it was when it was asked

    async def run(self) -> None:
        """Look again and again."""
        try:
            while True:
                try:
                    await self.look()
                except StoreError as error:
                    LOG.warning("schedules can't be looked at now: %s", error)
                await anyio.sleep(self._pause())
        finally:
            if self._lease is not None:
                with anyio.move_on_after(LOOK_SECONDS, shield=True), suppress(StoreError):
                    await self._store.leases.release(self._lease)

    async def look(self) -> None:
        """Send what has come due, if this process is the one to do it, and note how earlier runs stand.

        Raises:
            StoreError: Something could not be read or kept; what was not sent is due at the next look.
        """
        if not await self._is_ours():
            return
        now = self._clock.now()
        schedules = await self._book.all()
        for schedule in schedules:
            if schedule.last is not None and not schedule.last.is_over:
                await self._follow(schedule, schedule.last)
            elif schedule.is_over and schedule.last is not None and now - schedule.last.at > FORGET_SECONDS:
                await self._book.remove(schedule.name)
        self._next = {schedule.name: self._look_ahead(schedule) for schedule in schedules}
        come = [schedule for schedule, at in self._next.values() if at is not None and at <= now]
        await self._fire_all([due for schedule in come if (due := due_of(schedule, now))])

    def _look_ahead(self, schedule: Schedule) -> tuple[Schedule, float | None]:
        """Return a schedule with when it comes next; asked of its rule only when something of it has changed."""
        known = self._next.get(schedule.name)
        if known is not None and structs.replace(known[0], last=schedule.last) == schedule:
            return schedule, known[1]
        try:
            return schedule, first_of(schedule)
        except ScheduleRefused as error:  # its zone is not known any more, or somebody changed the file by hand
            LOG.warning("schedule %s can't be read: %s", schedule.name, error)
            return schedule, None

    def _pause(self) -> float:
        """Return how long to wait for the next look."""
        now = self._clock.now()
        ahead = [at - now for _, at in self._next.values() if at is not None and at > now]
        return min([LOOK_SECONDS, *ahead])

    async def _is_ours(self) -> bool:
        lapses = self._current_lapses()
        if self._lease is None or self._lapses != lapses:
            self._lapses = lapses
            self._lease = await self._store.leases.acquire(SCHEDULER)
        return self._lease is not None

    async def _fire_all(self, dues: Sequence[Due]) -> None:
        """Send them side by side: one whose session's owner does not answer holds no other up, and nobody for long."""
        with anyio.move_on_after(FIRE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for due in dues:
                    tasks.start_soon(self._fire, due)

    async def _fire(self, due: Due) -> None:
        try:
            await self._firing.fire(due)
        except StoreError as error:
            LOG.warning("schedule %s could not be sent, and is tried again: %s", due.schedule.name, error)

    async def _follow(self, schedule: Schedule, run: Run) -> None:
        """Note how far a run has come."""
        read = self._read.get(run.message, 0)
        records = await self._store.journal.read(schedule.session, read)
        new = progressed(run, records)
        self._read[run.message] = read + len(records)
        if new.is_over:
            del self._read[run.message]
        if new == run:
            return

        def change(found: Schedule) -> Schedule:
            is_same = found.last is not None and found.last.message == run.message
            return structs.replace(found, last=new) if is_same else found

        await self._book.change(schedule.name, change)
