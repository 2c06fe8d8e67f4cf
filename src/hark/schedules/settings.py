"""What the settings say about schedules."""

from enum import StrEnum

from msgspec import Struct

from hark.protocol.rules import Amount


class CatchUp(StrEnum):
    """What becomes of times that came while nobody served."""

    ONCE = "once"
    NEVER = "never"


class ScheduleSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[schedules]`: the zone of those that name none, times that were missed, and questions that nobody answers."""

    timezone: str = ""
    catch_up: CatchUp = CatchUp.ONCE
    grace_seconds: Amount = 86_400.0
    question_seconds: Amount = 600.0
