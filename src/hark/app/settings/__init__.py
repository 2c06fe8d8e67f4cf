"""Settings: their types, where they come from, and whether they can be used."""

import os
from pathlib import Path


class SettingsError(Exception):
    """The settings can't be used; the text says where, why, and what to do."""


def home_directory(home: str | Path | None = None) -> Path:
    """Return the directory that holds settings and sessions."""
    return Path(home or os.environ.get("HARK_HOME") or Path.home() / ".hark").expanduser()


def workspace() -> Path:
    """Return the directory that the agent works in."""
    return Path.cwd()
