"""Reads our JSON files. A damaged file is set aside, so that it never stops the program."""

import logging
import time
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

DAMAGED_SUFFIX = ".damaged"

_log = logging.getLogger(__name__)


def read_json(path: Path, kind: type[T]) -> T | None:
    """Return the decoded content of a file, or None if the file is missing or damaged. A damaged file is set aside.

    Raises:
        OSError: The file can't be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        set_aside(path, str(error))
        return None


def set_aside(path: Path, why: str) -> Path:
    """Rename a damaged file, so that a new one takes its place, and log that. Return the new path.

    Raises:
        OSError: The file can't be renamed.
    """
    aside = path.with_name(f"{path.name}.{time.time_ns()}{DAMAGED_SUFFIX}")
    path.replace(aside)
    _log.error("%s was damaged (%s) and was set aside as %s.", path, why, aside)
    return aside


def damaged_files_notice(home: Path) -> str:
    """Return a notice that lists the files in a home that were set aside, or "" if there are none."""
    patterns = (f"{folder}*{DAMAGED_SUFFIX}" for folder in ("", "matrix/", "mcp/"))
    names = sorted(path.relative_to(home).as_posix() for pattern in patterns for path in home.glob(pattern))
    if not names:
        return ""
    return f"Damaged files in {home} were set aside: {', '.join(names)}. Restore them from a backup, or delete them."
