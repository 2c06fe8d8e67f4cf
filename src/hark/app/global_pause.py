"""Pauses all sessions of a home: messages are accepted and stored, but no turn starts. Survives restarts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from hark.disk.durable import sync_folders
from hark.disk.private_files import replace_file
from hark.engine.services import CurrentSettings


class PauseFile:
    """The file in a home whose existence pauses all sessions of that home."""

    def __init__(self, home: Path) -> None:
        self._path = home / "paused"

    @property
    def exists(self) -> bool:
        """Whether the home is paused."""
        return self._path.exists()

    def create(self) -> None:
        """Pause the home durably.

        Raises:
            OSError: The file can't be written.
        """
        replace_file(self._path, b"")

    def remove(self) -> None:
        """Unpause the home durably. Does nothing if it is not paused.

        Raises:
            OSError: The file can't be removed.
        """
        self._path.unlink(missing_ok=True)
        sync_folders([self._path.parent])


class GlobalPause:
    """Applies the home's pause to this process. Running turns are not affected."""

    def __init__(self, file: PauseFile, current: CurrentSettings, on_change: Callable[[bool], None]) -> None:
        """`on_change` is called with True when the home was paused, and with False when it was unpaused."""
        self._file = file
        self._current = current
        self._on_change = on_change

    def check(self) -> None:
        """Read whether the home is paused, and apply a change."""
        settings = self._current.settings
        is_paused = self._file.exists
        if is_paused != settings.rules.is_paused:
            self._current.settings = replace(settings, rules=structs.replace(settings.rules, is_paused=is_paused))
            self._on_change(is_paused)
