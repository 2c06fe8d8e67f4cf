"""What `hark doctor` looks at on this machine: each look is a finding, with what to do when it is wrong."""

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile

from msgspec import Struct

from hark.app.presets import WITH_KEYS

SCARCE_BYTES = 500_000_000
TOO_FEW_BYTES = 20_000_000


class Level(StrEnum):
    """How good a finding is: `note` costs comfort, `bad` costs the turn."""

    OK = "ok"
    NOTE = "note"
    BAD = "bad"


class Finding(Struct, frozen=True):
    """One look: at what, what was seen, and what to do about it."""

    name: str
    level: Level
    text: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return f"{self.level:4}  {self.name:10}  {self.text}{advice}"


def machine(home: Path) -> Iterator[Finding]:
    """Look at all that needs neither network nor model."""
    from hark import __version__

    python = f"Python {platform.python_version()}"
    yield Finding("hark", Level.OK, f"{__version__} on {python}, {platform.system()} {platform.machine()}")
    yield _home(home)
    yield database(home / "hark.db")
    yield _keys()
    yield from _programs()
    yield _finder()
    yield _terminal()


def _home(home: Path) -> Finding:
    place = next((path for path in (home, *home.parents) if path.exists()), home)
    try:
        with TemporaryFile(dir=place):
            pass
    except OSError as error:
        advice = "Make it writable, or set HARK_HOME to another directory."
        return Finding("home", Level.BAD, f"{home} can't be written: {error.strerror}.", advice)
    free = shutil.disk_usage(place).free
    text = f"{home}, {free / 1e9:.1f} GB free"
    if free < TOO_FEW_BYTES:
        return Finding("home", Level.BAD, text, "Make room: sessions can't be saved.")
    if free < SCARCE_BYTES:
        return Finding("home", Level.NOTE, text, "Make room soon.")
    return Finding("home", Level.OK, text)


def database(file: Path) -> Finding:
    """Look at the sessions' database without changing it."""
    if not file.exists():
        return Finding("database", Level.OK, "none yet: the first message makes it")
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        verdict = str(error)
    size = f"{file}, {file.stat().st_size / 1e6:.1f} MB"
    if verdict == "ok":
        return Finding("database", Level.OK, f"{size}, sound")
    advice = "Move the file away (with its -wal and -shm) to begin anew, or bring back a copy."
    return Finding("database", Level.BAD, f"{size}: {verdict}.", advice)


def _keys() -> Finding:
    states = (f"{preset.key_env} {'is set' if os.environ.get(preset.key_env) else 'not set'}" for preset in WITH_KEYS)
    return Finding("keys", Level.OK, ", ".join(states))


def _programs() -> Iterator[Finding]:
    if sys.platform == "linux":
        if found := shutil.which("bwrap"):
            yield Finding("sandbox", Level.OK, f"bubblewrap: {found}")
        else:
            text = "bubblewrap is missing: commands run unconfined."
            yield Finding("sandbox", Level.NOTE, text, "Debian, Ubuntu: apt-get install bubblewrap.")
    else:
        yield Finding("sandbox", Level.NOTE, "none on this system: commands run unconfined.")
    if found := shutil.which("rg"):
        yield Finding("ripgrep", Level.OK, found)
    else:
        text = "missing: searching files is slower."
        yield Finding(
            "ripgrep", Level.NOTE, text, "Debian, Ubuntu: apt-get install ripgrep; macOS: brew install ripgrep."
        )


def _finder() -> Finding:
    from hark.tools.finder import ProcFinder, platform_finder

    if isinstance(platform_finder(), ProcFinder):
        return Finding("processes", Level.OK, "found in /proc: a stop reaches daemons, too")
    text = "found with ps: a daemon that leaves its process group can escape a stop."
    return Finding("processes", Level.NOTE, text, "Look for what a stopped command left behind.")


def _terminal() -> Finding:
    if not sys.stdout.isatty():
        return Finding("terminal", Level.OK, "the output is no terminal")
    name = os.environ.get("TERM", "")
    size = os.get_terminal_size(sys.stdout.fileno())
    text = f"{name or 'unknown'}, {size.columns}x{size.lines}, {sys.stdout.encoding}"
    if name in ("", "dumb"):
        return Finding("terminal", Level.NOTE, text, "Use hark --plain here.")
    if "utf" not in sys.stdout.encoding.lower():
        return Finding("terminal", Level.NOTE, text, "Set a UTF-8 locale, as LANG=C.UTF-8.")
    return Finding("terminal", Level.OK, text)
