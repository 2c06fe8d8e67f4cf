"""The rules that a session follows, as set by the settings."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

Count = Annotated[int, Meta(gt=0)]
Amount = Annotated[float, Meta(gt=0)]


class AfterStop(StrEnum):
    """The effect of a stop on queued messages."""

    HOLD = "hold"
    RUN = "run"
    EDIT = "edit"


class ApprovalMode(StrEnum):
    """When the user is asked before a tool runs."""

    ASK = "ask"
    AUTO = "auto"
    ALL = "all"


class Limits(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits for a turn, for a session and for a day (None for no limit), and timeouts for stopping.

    `sleep_seconds`: a session that is idle and has no readers for this long is unloaded from memory. `wake_ups`: how
    many turns background work may start between two messages from the user.
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
    wake_ups: Annotated[int, Meta(ge=0)] = 10


class Approvals(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When to ask the user, and patterns such as `shell:git *` that are always or never allowed.

    `writable`: directories outside the workspace that tools may also write to.
    """

    mode: ApprovalMode = ApprovalMode.AUTO
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class SteerBefore(StrEnum):
    """When a pending steer is delivered: before the next step, or before the next tool of the current step."""

    STEP = "step"
    TOOL = "tool"


class ChildrenOnMessage(StrEnum):
    """The effect of an interrupting message on the children of the interrupted turn."""

    CONTINUE = "continue"
    STOP = "stop"


class Rules(Struct, frozen=True, omit_defaults=True):
    """All rules of a session. `unattended_seconds`: the timeout of a question in a turn that no user started."""

    after_stop: AfterStop = AfterStop.HOLD
    limits: Limits = field(default_factory=Limits)
    approvals: Approvals = field(default_factory=Approvals)
    can_ask: bool = True
    steer_before: SteerBefore = SteerBefore.STEP
    unattended_seconds: Amount | None = None
