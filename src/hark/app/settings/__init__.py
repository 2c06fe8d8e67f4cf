"""Settings: their types, sources and checks."""

import os
from pathlib import Path


class SettingsError(Exception):
    """The settings can't be used. The message says where, why, and what to do."""


def home_directory(home: str | Path | None = None) -> Path:
    """Return the home directory, which holds settings and sessions."""
    return Path(home or os.environ.get("HARK_HOME") or Path.home() / ".hark").expanduser()


def workspace() -> Path:
    """Return the agent's working directory."""
    return Path.cwd()
