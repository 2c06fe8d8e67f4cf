"""Where Hark keeps its files, and where it works. Commands that need no settings import this alone."""

import os
from pathlib import Path


def home_directory(home: str | Path | None = None) -> Path:
    """Return the directory that holds settings and sessions."""
    return Path(home or os.environ.get("HARK_HOME") or Path.home() / ".hark").expanduser()


def workspace() -> Path:
    """Return the directory that the agent works in."""
    return Path.cwd()
