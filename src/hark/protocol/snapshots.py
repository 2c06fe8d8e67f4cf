"""The port to undo: what a changing step may change is kept before it runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct


class StepName(Struct, frozen=True):
    """One step of one turn of one session."""

    session: str
    turn: str
    step: int


class Undone(Struct, frozen=True):
    """What an undo did: the files that are as before, and what could not be undone, each with why."""

    restored: tuple[str, ...] = ()
    not_undone: tuple[str, ...] = ()


class UndoRefused(Exception):
    """Nothing was changed; the text says why, and what to do."""


class Snapshots(Protocol):
    """Keeps files as they were before changing steps. Both hooks are for the turn, `undo` is for its person."""

    async def before(self, step: StepName, workspace: Path, writes: Sequence[str] | None) -> None:
        """Keep what the step may change: these paths, or with None anything in the workspace.

        Never raises but for cancellation, and is bounded: what could not be kept is told by `undo`. Cancelling it is
        safe: no snapshot is better than half a one. A step may call it more than once, as its calls begin.
        """
        ...

    def after(self, step: StepName, notes: Sequence[str] = ()) -> None:
        """The step is over, however it ended; waits for nothing. `notes` tell what was done beyond files."""
        ...

    async def undo(self, session: str, *, only_step: bool = False, since: str = "") -> Undone:
        """Put back what the session's last turn (or only its last step) changed that is not undone yet.

        With `since`, all that was changed by that turn and those after it; nothing of that may be there.

        Cancelling stops it before the first file, or not at all: then it is done nevertheless.

        Raises:
            UndoRefused: There is nothing to undo, or a file was changed since: then nothing at all is touched.
        """
        ...

    async def close(self) -> None:
        """Finish or give up what is under way, within a second."""
        ...
