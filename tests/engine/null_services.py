"""Engine services for tests that store nothing on disk."""

from collections.abc import Sequence
from pathlib import Path

from hark.protocol.snapshots import StepId, UndoRefused, UndoResult


class GrantsInMemory:
    """Grants that are stored only in memory."""

    def __init__(self) -> None:
        self.all: set[str] = set()

    async def add(self, grant: str) -> None:
        """Add a grant."""
        self.all.add(grant)


class NoSnapshots:
    """A test double for snapshots. It saves nothing and refuses every undo."""

    async def save_before_step(self, step: StepId, workspace: Path, writes: Sequence[str] | None) -> None:
        """Save nothing."""

    def finish_step(self, step: StepId, notes: Sequence[str] = ()) -> None:
        """Do nothing."""

    async def undo(self, session: str, *, only_step: bool = False, since: str = "") -> UndoResult:
        """Refuse every undo."""
        raise UndoRefused("There is nothing to undo, because undo is switched off.")

    async def close(self) -> None:
        """Do nothing."""
