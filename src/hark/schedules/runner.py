"""The runner of schedules in `hark serve`: one for a home, however many processes serve it."""

import logging
from collections.abc import Sequence
from contextlib import suppress

import anyio
from msgspec import structs

from hark.protocol.names import SCHEDULER
from hark.protocol.schedules import Run, Schedule, ScheduleRefused
from hark.protocol.store import Lease, StoreError
from hark.schedules.firing import Due, Firing, ScheduleServices, due_of, first_of
from hark.schedules.runs import progressed

LOOK_SECONDS = 1.0
FIRE_SECONDS = 10.0
FORGET_SECONDS = 7 * 86_400.0  # what is over for good is shown for so long
LOG = logging.getLogger(__name__)


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
