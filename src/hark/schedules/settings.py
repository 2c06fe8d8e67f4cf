"""The `[schedules]` settings."""

from enum import StrEnum

from msgspec import Struct

from hark.protocol.rules import Amount


class CatchUp(StrEnum):
    """Whether a time that passed while `hark serve` was not running is caught up once, or never."""

    ONCE = "once"
    NEVER = "never"


class ScheduleSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[schedules]`: the default time zone, the handling of missed times, and the time limit for questions."""

    timezone: str = ""
    catch_up: CatchUp = CatchUp.ONCE
    grace_seconds: Amount = 86_400.0
    question_seconds: Amount = 600.0
