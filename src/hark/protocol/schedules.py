"""The words and ports of schedules: prompts that are put into a session when their time has come."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct, field

from hark.protocol.commands import Delivery
from hark.protocol.receipts import Receipt

TEXT_CHARACTERS = 200
MOST_PROMPT = 100_000
ShortText = Annotated[str, Meta(max_length=TEXT_CHARACTERS)]


class ScheduleRefused(ValueError):
    """A wish about schedules can't be met; the text says what is wrong where, and what would do.

    `code` is bad_schedule, exists, unknown, over or full.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RunState(StrEnum):
    """How a run stands. The first three go on; the others are ends."""

    SENT = "sent"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"  # a slash command, which is no turn
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMIT_REACHED = "limit_reached"
    WITHDRAWN = "withdrawn"
    SKIPPED = "skipped"
    MISSED = "missed"


_GOING_ON = (RunState.SENT, RunState.WAITING, RunState.RUNNING)


class Run(Struct, frozen=True):
    """One time that a schedule came due: `due` is when, `at` when it was dealt with, both in Unix time.

    `message` is the id of what was said, "" when nothing was; `note` says what was unusual, such as a time that was
    missed and made good; `detail` says more about its end.
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
        """True when nothing more comes of it."""
        return self.state not in _GOING_ON


class Schedule(Struct, frozen=True, omit_defaults=True):
    """A prompt and its times.

    `when` is what the person wrote, `rule` what it means: cron's five fields, `every N seconds`, or one moment.
    Moments up to `since` are dealt with. `is_once`: it is over after its first run.
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


class ScheduleOrder(Struct, frozen=True):
    """A request for a new schedule. Empty fields get a default."""

    when: Annotated[ShortText, Meta(examples=["0 9 * * mon-fri", "every 30 minutes", "at 18:30", "2026-12-01 09:00"])]
    prompt: Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": MOST_PROMPT})]
    session: ShortText = ""
    name: ShortText = ""
    timezone: Annotated[ShortText, Meta(examples=["Europe/Zurich", "UTC"])] = ""
    delivery: Delivery = Delivery.QUEUE
    is_once: bool = field(name="once", default=False)


class ScheduleRow(Struct, frozen=True):
    """A schedule as it is shown: `state` is active, paused or over; `next_at` is Unix time, `next` the same as text."""

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


class ScheduleBook(Protocol):
    """All schedules of a home. Several processes may change it at once; durable when a method has returned.

    Every method raises StoreError when it can't do what it should. Cancelling one leaves open whether it was done.
    """

    async def all(self) -> list[Schedule]:
        """Return the schedules, by name."""
        ...

    async def add(self, schedule: Schedule, most: int) -> str:
        """Keep one more, of `most` in all; return "", or why not: "exists" or "full"."""
        ...

    async def change(self, name: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Put what `change` makes of a schedule in its place, with nothing in between. None: there is none.

        `change` must not raise.
        """
        ...

    async def remove(self, name: str) -> Schedule | None:
        """Forget a schedule; return what it was."""
        ...


class Schedules(Protocol):
    """What a program may do with schedules. Every method raises ScheduleRefused when it can't be."""

    async def rows(self) -> list[ScheduleRow]:
        """Return them all, by name."""
        ...

    async def row(self, name: str) -> ScheduleRow:
        """Return one."""
        ...

    async def add(self, order: ScheduleOrder) -> ScheduleRow:
        """Keep a new one."""
        ...

    async def pause(self, name: str) -> ScheduleRow:
        """Have it send nothing until it is resumed; a turn that runs goes on."""
        ...

    async def resume(self, name: str) -> ScheduleRow:
        """Have it send again, from its next time on."""
        ...

    async def remove(self, name: str) -> ScheduleRow:
        """Forget it; a turn that runs goes on."""
        ...

    async def run(self, name: str) -> Receipt:
        """Say its prompt now; its times stay as they are."""
        ...
