"""What a person is told of an undo."""

import os
from collections.abc import Sequence

from hark.tools.undo.manifest import EntryKind, show_path
from hark.tools.undo.plan import Conflict, Plan

NAMED_LIMIT = 10


def restored_names(plan: Plan, staying: Sequence[bytes]) -> tuple[str, ...]:
    """Return what is as before again; folders with a slash."""
    names = {move.target: "" for move in plan.moves}
    for change in plan.changes:
        is_folder = any(entry is not None and entry.kind is EntryKind.FOLDER for entry in (change.before, change.after))
        names[change.path] = "/" if is_folder else ""
    return tuple(show_path(path, plan.root) + names[path] for path in sorted(names) if path not in staying)


def few(lines: Sequence[str]) -> list[str]:
    """Return as many lines as a person reads."""
    more = len(lines) - NAMED_LIMIT * 2
    return [*lines[: NAMED_LIMIT * 2], f"and {more} more like this"] if more > 0 else list(lines)


def conflict_text(conflict: Conflict, root: bytes) -> str:
    """Return which files are not as the steps left them, and what to do."""
    names = [show_path(path, root) for path in conflict.paths]
    more = f" and {len(names) - NAMED_LIMIT} more" if len(names) > NAMED_LIMIT else ""
    verb = "was" if len(names) == 1 else "were"
    return (
        f"Nothing was undone: {', '.join(names[:NAMED_LIMIT])}{more} {verb} changed since. "
        "Move your version away or put back what the step left, then undo again."
    )


def reason_text(error: OSError) -> str:
    """Return what went wrong, and with which file."""
    name = show_path(os.fsencode(error.filename), b"") if isinstance(error.filename, str | bytes) else ""
    return f"{name + ': ' if name else ''}{(error.strerror or str(error)).lower()}"
