"""The port for undo: files that a step may change are saved before the step runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct


class StepId(Struct, frozen=True):
    """Identifies one step of one turn of one session."""

    session: str
    turn: str
    step: int


class UndoResult(Struct, frozen=True):
    """The result of an undo: the restored files, and the changes that could not be undone with the reasons."""

    restored: tuple[str, ...] = ()
    not_undone: tuple[str, ...] = ()


class UndoRefused(Exception):
    """The undo was refused and nothing was changed. The text says why and what to do."""


class Snapshots(Protocol):
    """Saves files before steps change them. The turn calls the first two methods; `undo` is called for the user."""

    async def save_before_step(self, step: StepId, workspace: Path, writes: Sequence[str] | None) -> None:
        """Save the files that the step may change: these paths, or with None the whole workspace.

        Raises nothing except cancellation, and takes a bounded time. `undo` reports files that could not be saved.
        Cancelling is safe and leaves no partial snapshot. A step may call this several times, as its calls start.
        """
        ...

    def finish_step(self, step: StepId, notes: Sequence[str] = ()) -> None:
        """Mark a step as ended, whatever its outcome. Does not wait. `notes` list effects other than file changes."""
        ...

    async def undo(self, session: str, *, only_step: bool = False, since: str = "") -> UndoResult:
        """Revert the file changes of the session's last turn (or only its last step) that are not undone yet.

        With `since`, revert all changes of that turn and later turns; it is not an error if there are none.

        Cancelling stops the undo only before the first file is written. After that it runs to completion.

        Raises:
            UndoRefused: There is nothing to undo, or a file was changed after the step; no file is touched.
        """
        ...

    async def close(self) -> None:
        """Finish or abandon work in progress, within a second."""
        ...
