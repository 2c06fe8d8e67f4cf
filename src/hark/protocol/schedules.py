"""Types and ports of schedules: prompts that are sent to a session at set times."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct, field

from hark.protocol.commands import Delivery
from hark.protocol.receipts import Receipt

MAX_TEXT_CHARACTERS = 200
MAX_PROMPT_CHARACTERS = 100_000
ShortText = Annotated[str, Meta(max_length=MAX_TEXT_CHARACTERS)]


class ScheduleRefused(ValueError):
    """A request about schedules is refused. The text describes the error and names a valid alternative.

    `code` is bad_schedule, exists, unknown, over or full.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RunState(StrEnum):
    """The state of a run. The first three states are unfinished; the others are final."""

    SENT = "sent"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"  # a slash command, which starts no turn
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMIT_REACHED = "limit_reached"
    WITHDRAWN = "withdrawn"
    SKIPPED = "skipped"
    MISSED = "missed"


_UNFINISHED = (RunState.SENT, RunState.WAITING, RunState.RUNNING)


class Run(Struct, frozen=True):
    """One run of a schedule. `due` is its scheduled time, `at` the time it was processed, both in Unix time.

    `message` is the id of the sent message, "" if none was sent. `note` describes anything unusual, such as a missed
    time that was caught up. `detail` describes how the run ended.
    """

    due: float
    at: float
    state: RunState = RunState.SENT
    message: str = ""
    turn: str = ""
    note: str = ""
    detail: str = ""

    @property
    def is_over(self) -> bool:
        """True when the run's state is final."""
        return self.state not in _UNFINISHED


class Schedule(Struct, frozen=True, omit_defaults=True):
    """A prompt and the times at which it is sent.

    `when` is the text that the user wrote. `rule` is its normalised form: five cron fields, `every N seconds`, or one
    moment. Times up to `since` are already processed. `is_once`: the schedule ends after its first run.
    """

    name: str
    when: str
    rule: str
    prompt: str
    session: str
    timezone: str
    since: float
    delivery: Delivery = Delivery.QUEUE
    is_once: bool = False
    is_paused: bool = False
    is_over: bool = False
    last: Run | None = None


class ScheduleRequest(Struct, frozen=True):
    """A request for a new schedule. Empty fields get a default."""

    when: Annotated[ShortText, Meta(examples=["0 9 * * mon-fri", "every 30 minutes", "at 18:30", "2026-12-01 09:00"])]
    prompt: Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_PROMPT_CHARACTERS})]
    session: ShortText = ""
    name: ShortText = ""
    timezone: Annotated[ShortText, Meta(examples=["Europe/Zurich", "UTC"])] = ""
    delivery: Delivery = Delivery.QUEUE
    is_once: bool = field(name="once", default=False)


class ScheduleInfo(Struct, frozen=True):
    """A schedule for display. `state` is active, paused or over. `next_at` is Unix time, `next` the same as text."""

    name: str
    when: str
    rule: str
    prompt: str
    session: str
    timezone: str
    delivery: Delivery
    once: bool
    state: Literal["active", "paused", "over"]
    next_at: float | None
    next: str | None
    last: Run | None


class ScheduleStore(Protocol):
    """All schedules of a home. Several processes may change them concurrently; changes are durable on return.

    Every method raises StoreError on failure. After a cancellation it is unknown whether the change was made.
    """

    async def all(self) -> list[Schedule]:
        """Return the schedules, sorted by name."""
        ...

    async def add(self, schedule: Schedule, max_count: int) -> str:
        """Store a schedule unless `max_count` already exist. Return "", or why it was refused: "exists" or "full"."""
        ...

    async def change(self, name: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Atomically replace a schedule with `change(schedule)`. Return None if it does not exist.

        `change` must not raise.
        """
        ...

    async def remove(self, name: str) -> Schedule | None:
        """Delete a schedule and return it, or None if it does not exist."""
        ...


class Schedules(Protocol):
    """The operations on schedules. Every method raises ScheduleRefused if it refuses the request."""

    async def all(self) -> list[ScheduleInfo]:
        """Return all schedules, sorted by name."""
        ...

    async def get(self, name: str) -> ScheduleInfo:
        """Return one schedule."""
        ...

    async def add(self, request: ScheduleRequest) -> ScheduleInfo:
        """Create a schedule."""
        ...

    async def pause(self, name: str) -> ScheduleInfo:
        """Pause a schedule until it is resumed. A running turn continues."""
        ...

    async def resume(self, name: str) -> ScheduleInfo:
        """Resume a paused schedule. Times that passed during the pause are not caught up."""
        ...

    async def remove(self, name: str) -> ScheduleInfo:
        """Delete a schedule. A running turn continues."""
        ...

    async def run(self, name: str) -> Receipt:
        """Send the schedule's prompt immediately. The scheduled times don't change."""
        ...
