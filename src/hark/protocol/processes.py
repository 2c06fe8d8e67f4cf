"""The port to a program that is talked with over its pipes, and is ended whole."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol


class PipedProcess(Protocol):
    """A running program. Whoever had it started calls `stop`, however it ends."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None before `stop` has returned."""
        ...

    async def receive(self) -> bytes:
        """Return what it printed next, b"" when it will print no more. Safe to cancel: nothing is lost."""
        ...

    async def send(self, piece: bytes) -> None:
        """Return when all of it is in the program's input. Cancelling may leave a part of it there.

        Raises:
            OSError: The program reads no more.
        """
        ...

    async def exited(self) -> None:
        """Return when it has ended, even when what it started holds its output open. Safe to cancel."""
        ...

    async def stop(self) -> Sequence[str]:
        """End it with all that came of it, in less than a second; return the names of what could not be ended.

        Its input is closed first, so that it can end by itself. Cancelling it kills at once.
        """
        ...


class Spawn(Protocol):
    """Starts programs."""

    def __call__(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], errors: Callable[[bytes], None]
    ) -> PipedProcess:
        """Start a program with this environment and no other; `errors` gets what it prints there.

        Raises:
            OSError, ValueError: The system can't start it.
        """
        ...
