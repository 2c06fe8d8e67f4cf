"""The schedule runner of `hark serve`. One process per home runs it."""

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
from hark.protocol.schedules import Run, RunState, Schedule, ScheduleRefused, ScheduleStore
from hark.protocol.session import Session
from hark.protocol.store import Lease, Store, StoreError
from hark.schedules.service import IsCommand, format_time, make_message, update_run
from hark.schedules.settings import CatchUp, ScheduleSettings
from hark.schedules.times import find_zone, format_utc, parse_rule

LATE_SECONDS = 60.0
MISSED = "hark serve was not running at that time"
LOG = logging.getLogger(__name__)
CHECK_SECONDS = 1.0
SEND_TIMEOUT_SECONDS = 10.0
REMOVE_AFTER_SECONDS = 7 * 86_400.0  # how long a finished schedule is still listed


@dataclass(frozen=True, slots=True)
class RunnerServices:
    """The services that the runner uses. `notice` shows a text to the subscribers of a session.

    `lapses` counts how often this process may have lost its leases.
    """

    schedules: ScheduleStore
    store: Store
    clock: Clock
    settings: ScheduleSettings
    session: Callable[[str], Session]
    notice: Callable[[str, str], None]
    is_command: IsCommand
    lapses: Callable[[], int]


@dataclass(frozen=True, slots=True)
class DueRun:
    """A scheduled time that has passed and is not processed yet. `is_late`: no process ran schedules at that time."""

    schedule: Schedule
    at: float
    is_late: bool


def first_unprocessed_time(schedule: Schedule) -> float | None:
    """Return the first scheduled time, past or future, not processed yet. None if the schedule is paused or over.

    Raises:
        ScheduleRefused: The rule or the time zone is invalid.
    """
    if schedule.is_paused or schedule.is_over:
        return None
    return parse_rule(schedule.rule, find_zone(schedule.timezone)).next(schedule.since)


def find_due_run(schedule: Schedule, now: float) -> DueRun | None:
    """Return the latest scheduled time that is due and unprocessed. Earlier times are never caught up."""
    at = parse_rule(schedule.rule, find_zone(schedule.timezone)).last(schedule.since, now)
    return None if at is None else DueRun(schedule, at, now - at > LATE_SECONDS)


class DueRunSender:
    """Sends the messages of due runs to their sessions.

    The message id consists of the schedule's name and the time, and the inbox accepts each id only once. Sending a
    message again, after a crash or from another process, has no effect. So it is sent first and recorded afterwards.
    """

    def __init__(self, services: RunnerServices) -> None:
        self._services = services
        self._schedules = services.schedules
        self._settings = services.settings
        self._clock = services.clock

    async def send(self, due: DueRun) -> None:
        """Send the message of a due run, or record why it is not sent.

        Raises:
            StoreError: The message may not have been sent. It can be sent again.
        """
        schedule = due.schedule
        message = make_message(schedule, format_utc(due.at))
        note = ""
        if due.is_late:
            if not self._should_catch_up(due):
                await self._record_run(due, Run(due.at, self._clock.now(), RunState.MISSED, note=MISSED))
                return
            note = f"{MISSED}; this run catches up"
        session = self._services.session(schedule.session)
        if self._services.is_command(message.text):
            await self._run_command(due, session, message, note)
            return
        queued = await self._find_queued_run(session, message)
        if queued is not None and queued.state is not ReceiptState.HELD:
            reason = "the previous message is still queued"
            await self._record_run(due, Run(due.at, self._clock.now(), RunState.SKIPPED, note=reason))
            self._notify(due, f"was skipped: {reason}")
            return
        if queued is not None:
            await session.withdraw(queued.id)  # a stop put it on hold; the new message releases the held queue
        await session.say(message.text, message.delivery, id=message.id, author=message.author)
        await self._record_run(due, Run(due.at, self._clock.now(), RunState.SENT, message.id, note=note))
        if note:
            self._notify(due, f"runs now: {note}")

    def _should_catch_up(self, due: DueRun) -> bool:
        age = self._clock.now() - due.at
        return self._settings.catch_up is CatchUp.ONCE and age <= self._settings.grace_seconds

    async def _find_queued_run(self, session: Session, message: Say) -> QueueItem | None:
        """Return another queued message from the same schedule, or None."""
        items = await session.queue()
        return next((item for item in items if is_same_schedule(message.id, item.id) and item.id != message.id), None)

    async def _run_command(self, due: DueRun, session: Session, message: Say, note: str) -> None:
        """Run a slash command at most once: the inbox does not store commands, so the run is recorded first."""
        if await self._record_run(due, Run(due.at, self._clock.now(), RunState.DONE, message.id, note=note)):
            await session.say(message.text, message.delivery, id=message.id, author=message.author)

    async def _record_run(self, due: DueRun, run: Run) -> bool:
        """Record that a scheduled time was processed. Return False if it was already recorded."""
        is_first = False
        schedule = due.schedule
        has_next = parse_rule(schedule.rule, find_zone(schedule.timezone)).next(due.at) is not None
        is_over = schedule.is_once or not has_next

        def change(schedule: Schedule) -> Schedule:
            nonlocal is_first
            is_first = schedule.since < due.at
            if not is_first:
                return schedule
            return structs.replace(schedule, since=due.at, last=run, is_over=is_over)

        await self._schedules.change(schedule.name, change)
        if is_first:
            LOG.info("schedule %s: %s %s %s", schedule.name, format_utc(due.at), run.state, run.note)
        return is_first

    def _notify(self, due: DueRun, result: str) -> None:
        when = format_time(due.at, due.schedule.timezone)
        self._services.notice(due.schedule.session, f"Schedule {due.schedule.name} (due {when}) {result}.")


class ScheduleRunner:
    """Sends the messages of due runs. Checks every second, because the clock may change and the machine may sleep.

    A lease makes it the only runner. That saves work and keeps the records consistent, but a second runner would do
    no harm: the inbox accepts each message once.
    """

    def __init__(self, services: RunnerServices) -> None:
        self._store = services.store
        self._schedules = services.schedules
        self._clock = services.clock
        self._current_lapses = services.lapses
        self._sender = DueRunSender(services)
        self._lease: Lease | None = None
        self._lapses = 0
        self._records_read: dict[str, int] = {}  # the number of session records already read, by message id of the run
        # the next time of each schedule, with the version of the schedule it was computed for
        self._next_times: dict[str, tuple[Schedule, float | None]] = {}

    async def run(self) -> None:
        """Check for due runs until cancelled."""
        try:
            while True:
                try:
                    await self.check()
                except StoreError as error:
                    LOG.warning("can't check the schedules: %s", error)
                await anyio.sleep(self._seconds_until_check())
        finally:
            if self._lease is not None:
                with anyio.move_on_after(CHECK_SECONDS, shield=True), suppress(StoreError):
                    await self._store.leases.release(self._lease)

    async def check(self) -> None:
        """Send the messages of due runs if this process holds the lease, and update the state of earlier runs.

        Raises:
            StoreError: The store failed. Unsent messages are due again at the next check.
        """
        if not await self._acquire_lease():
            return
        now = self._clock.now()
        schedules = await self._schedules.all()
        for schedule in schedules:
            if schedule.last is not None and not schedule.last.is_over:
                await self._update_run(schedule, schedule.last)
            elif schedule.is_over and schedule.last is not None and now - schedule.last.at > REMOVE_AFTER_SECONDS:
                await self._schedules.remove(schedule.name)
        self._next_times = {schedule.name: self._find_next_time(schedule) for schedule in schedules}
        due_schedules = [schedule for schedule, at in self._next_times.values() if at is not None and at <= now]
        await self._send_all([due for schedule in due_schedules if (due := find_due_run(schedule, now))])

    def _find_next_time(self, schedule: Schedule) -> tuple[Schedule, float | None]:
        """Return a schedule and its next time. The time is computed only if the schedule has changed."""
        known = self._next_times.get(schedule.name)
        if known is not None and structs.replace(known[0], last=schedule.last) == schedule:
            return schedule, known[1]
        try:
            return schedule, first_unprocessed_time(schedule)
        except ScheduleRefused as error:  # its zone no longer exists, or the file was edited by hand
            LOG.warning("schedule %s can't be read: %s", schedule.name, error)
            return schedule, None

    def _seconds_until_check(self) -> float:
        """Return how long to wait until the next check."""
        now = self._clock.now()
        waits = [at - now for _, at in self._next_times.values() if at is not None and at > now]
        return min([CHECK_SECONDS, *waits])

    async def _acquire_lease(self) -> bool:
        lapses = self._current_lapses()
        if self._lease is None or self._lapses != lapses:
            self._lapses = lapses
            self._lease = await self._store.leases.acquire(SCHEDULER)
        return self._lease is not None

    async def _send_all(self, due_runs: Sequence[DueRun]) -> None:
        """Send the messages concurrently, with a timeout, so that a slow owner doesn't delay other sessions."""
        with anyio.move_on_after(SEND_TIMEOUT_SECONDS):
            async with anyio.create_task_group() as tasks:
                for due in due_runs:
                    tasks.start_soon(self._send, due)

    async def _send(self, due: DueRun) -> None:
        try:
            await self._sender.send(due)
        except StoreError as error:
            LOG.warning("schedule %s was not sent and will be retried: %s", due.schedule.name, error)

    async def _update_run(self, schedule: Schedule, run: Run) -> None:
        """Update the recorded state of a run from its session's journal."""
        read = self._records_read.get(run.message, 0)
        records = await self._store.journal.read(schedule.session, read)
        updated = update_run(run, records)
        self._records_read[run.message] = read + len(records)
        if updated.is_over:
            del self._records_read[run.message]
        if updated == run:
            return

        def change(current: Schedule) -> Schedule:
            is_same = current.last is not None and current.last.message == run.message
            return structs.replace(current, last=updated) if is_same else current

        await self._schedules.change(schedule.name, change)
