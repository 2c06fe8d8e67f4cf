"""The rules that a session follows: what the settings may change."""

from enum import StrEnum

from msgspec import Struct, field


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
    """What a turn may use, None for no limit; and how long a settlement and an exit may take."""

    steps: int | None = 100
    tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    reply_characters: int = 2_000_000
    settle_seconds: float = 1.0
    exit_seconds: float = 5.0


class Approvals(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a person is asked, and what is always or never allowed: patterns such as `shell:git *`."""

    mode: ApprovalMode = ApprovalMode.AUTO
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Rules(Struct, frozen=True, omit_defaults=True):
    """All of them."""

    after_stop: AfterStop = AfterStop.HOLD
    limits: Limits = field(default_factory=Limits)
    approvals: Approvals = field(default_factory=Approvals)
    can_ask: bool = True
