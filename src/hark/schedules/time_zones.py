"""Time zones by their names, and the one that this machine is in."""

import os
from datetime import UTC, tzinfo
from difflib import get_close_matches
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hark.protocol.schedules import ScheduleRefused

UTC_NAME = "UTC"
_LINK = Path("/etc/localtime")
_FOLDER = "zoneinfo/"


def zone_of(name: str) -> tzinfo:
    """Return a time zone.

    Raises:
        ScheduleRefused: There is none of that name.
    """
    if name == UTC_NAME:
        return UTC  # there even where no zones are installed
    zone = _found(name)
    if zone is not None:
        return zone
    names = sorted(available_timezones())
    if not names:
        raise ScheduleRefused("bad_schedule", "This machine has no time zones: install tzdata, or use UTC.")
    near = get_close_matches(name, names, 1, 0.5) or [one for one in names if name.lower() in one.lower()][:1]
    meant = f" Did you mean {near[0]}?" if near else ""
    words = f'There is no time zone "{name[:100]}".{meant} A zone is named like Europe/Zurich or UTC.'
    raise ScheduleRefused("bad_schedule", words)


def local_zone() -> str:
    """Return the name of this machine's zone; UTC when it can't be told."""
    for name in (os.environ.get("TZ", "").lstrip(":"), _linked()):
        if name and _found(name) is not None:
            return name
    return UTC_NAME


def _linked() -> str:
    try:
        return str(_LINK.resolve()).partition(_FOLDER)[2]
    except (OSError, RuntimeError):
        return ""


def _found(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # no such key, a path that leads out, a folder
        return None
