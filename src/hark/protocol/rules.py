"""The rules that a session follows: what the settings may change."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

Count = Annotated[int, Meta(gt=0)]
Amount = Annotated[float, Meta(gt=0)]


class AfterStop(StrEnum):
    """What a stop does with messages that wait."""

    HOLD = "hold"
    RUN = "run"
    EDIT = "edit"


class ApprovalMode(StrEnum):
    """When a person is asked before a tool runs."""

    ASK = "ask"
    AUTO = "auto"
    ALL = "all"


class Limits(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a turn may use, and all turns of a session or a day, None for no limit; how long an end may take.

    `sleep_seconds`: a session that is idle and unwatched for so long is put to sleep, and its memory given back.
    """

    steps: Count | None = 100
    tokens: Count | None = None
    seconds: Amount | None = None
    cost_usd: Amount | None = None
    session_tokens: Count | None = None
    session_cost_usd: Amount | None = None
    day_cost_usd: Amount | None = None
    reply_characters: Count = 2_000_000
    settle_seconds: Amount = 1.0
    exit_seconds: Amount = 5.0
    sleep_seconds: Amount = 600.0


class Approvals(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a person is asked, and what is always or never allowed: patterns such as `shell:git *`.

    `writable`: folders beside the workspace that may be written to as if they were in it.
    """

    mode: ApprovalMode = ApprovalMode.AUTO
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class SteerBefore(StrEnum):
    """What a waiting steer comes before: the next step, or already the next tool of this one."""

    STEP = "step"
    TOOL = "tool"


class Rules(Struct, frozen=True, omit_defaults=True):
    """All of them. `unattended_seconds`: how long a question waits in a turn that no person began."""

    after_stop: AfterStop = AfterStop.HOLD
    limits: Limits = field(default_factory=Limits)
    approvals: Approvals = field(default_factory=Approvals)
    can_ask: bool = True
    steer_before: SteerBefore = SteerBefore.STEP
    unattended_seconds: Amount | None = None
