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


class QuietAction(StrEnum):
    """The effect of a long silence in a turn without a user."""

    WAIT = "wait"
    STOP = "stop"


class Limits(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits for a turn, for a session and for a day (None for no limit), and timeouts for stopping.

    `sleep_seconds`: a session that is idle and has no readers for this long is unloaded from memory. `wake_ups`: how
    many turns background work may start between two messages from the user. `queue_messages` and `queue_mb`: the size
    of a session's queue. `quiet_seconds`: after this time without an event from the model or a tool, the user is asked
    whether to wait, retry or stop; `quiet_unattended` applies if there is no user to ask.
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
    queue_messages: Count = 1_000
    queue_mb: Amount = 64.0
    quiet_seconds: Amount | None = 120.0
    quiet_unattended: QuietAction = QuietAction.WAIT


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


class AfterRestart(StrEnum):
    """What happens to a turn that a restart or a crash of Hark interrupted: offer `/continue`, or continue it."""

    OFFER = "offer"
    CONTINUE = "continue"


class ResetPolicy(StrEnum):
    """When a conversation is reset automatically, before a new message."""

    OFF = "off"
    DAILY = "daily"
    IDLE = "idle"


class SessionRules(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[sessions]`: when a conversation is reset automatically.

    `idle_hours` is the time without activity for "idle". `daily_hour` is the local hour at which a day begins.
    """

    reset: ResetPolicy = ResetPolicy.OFF
    idle_hours: Amount = 24.0
    daily_hour: Annotated[int, Meta(ge=0, le=23)] = 4


class Rules(Struct, frozen=True, omit_defaults=True):
    """All rules of a session. `unattended_seconds`: the timeout of a question in a turn that no user started.

    `is_paused`: all sessions are paused, so no turn starts.
    """

    after_stop: AfterStop = AfterStop.HOLD
    limits: Limits = field(default_factory=Limits)
    approvals: Approvals = field(default_factory=Approvals)
    can_ask: bool = True
    steer_before: SteerBefore = SteerBefore.STEP
    unattended_seconds: Amount | None = None
    after_restart: AfterRestart = AfterRestart.OFFER
    sessions: SessionRules = field(default_factory=SessionRules)
    is_paused: bool = False
