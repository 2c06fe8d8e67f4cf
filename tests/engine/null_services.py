"""Services of the engine that keep nothing, for tests."""

from collections.abc import Sequence
from pathlib import Path

from hark.protocol.snapshots import StepName, Undone, UndoRefused


class GrantsInMemory:
    """Grants that last as long as the process."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    async def remember(self, grant: str) -> None:
        """Keep one more."""
        self.known.add(grant)


class NoSnapshots:
    """Keeps nothing, so nothing can be undone."""

    async def before(self, step: StepName, workspace: Path, writes: Sequence[str] | None) -> None:
        """Keep nothing."""

    def after(self, step: StepName, notes: Sequence[str] = ()) -> None:
        """Keep nothing."""

    async def undo(self, session: str, *, only_step: bool = False, since: str = "") -> Undone:
        """Refuse."""
        raise UndoRefused("Nothing is kept that could be undone: undo is switched off.")

    async def close(self) -> None:
        """Nothing is under way."""
