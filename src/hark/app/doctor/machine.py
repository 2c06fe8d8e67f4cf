"""What `hark doctor` looks at on this machine: disk, database, keys, programs, processes."""

import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile

from hark.app.doctor.results import Finding, Level
from hark.app.settings.presets import WITH_KEYS
from hark.app.settings.types import Settings
from hark.processes.sandbox import Sandbox, SandboxMissing, Walls

LEAST_COLUMNS, LEAST_LINES = 80, 24
SLOW_ESCAPE_MS = 50
TMUX_SECONDS = 0.5
SCARCE_BYTES = 500_000_000
TOO_FEW_BYTES = 20_000_000
LARGE_LOG_BYTES = 200_000_000
CHECK_SECONDS = 1.0
# How many steps of its machine SQLite takes between two looks at the clock.
_STEPS = 10_000


def version() -> Iterator[Finding]:
    """Tell what runs here."""
    from hark.version import __version__

    python = f"Python {platform.python_version()}"
    yield Finding("hark", Level.OK, f"{__version__} on {python}, {platform.system()} {platform.machine()}")


def home_disk(home: Path) -> Iterator[Finding]:
    """Look whether the home can be written, and has room."""
    place = next((path for path in (home, *home.parents) if path.exists()), home)
    try:
        with TemporaryFile(dir=place):
            pass
    except OSError as error:
        advice = "Make it writable, or set HARK_HOME to another directory."
        yield Finding("home", Level.BAD, f"{home} can't be written: {error.strerror}.", advice)
        return
    free = shutil.disk_usage(place).free
    text = f"{home}, {free / 1e9:.1f} GB free"
    if free < TOO_FEW_BYTES:
        yield Finding("home", Level.BAD, text, "Make room: sessions can't be saved.")
    elif free < SCARCE_BYTES:
        yield Finding("home", Level.WARN, text, "Make room soon.")
    else:
        yield Finding("home", Level.OK, text)


def database(file: Path) -> Iterator[Finding]:
    """Look at the sessions' database, for a second at most, without changing it."""
    if not file.exists():
        yield Finding("database", Level.OK, "none yet: the first message makes it")
        return
    log = file.with_name(f"{file.name}-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    text = f"{file}, {file.stat().st_size / 1e6:.1f} MB" + (
        f" and {log_bytes / 1e6:.1f} MB of log" if log_bytes else ""
    )
    verdict = _quick_check(file)
    if verdict not in ("ok", "long"):
        advice = "Move the file away (with its -wal and -shm) to begin anew, or bring back a copy."
        yield Finding("database", Level.BAD, f"{text}: {verdict}.", advice)
    elif log_bytes > LARGE_LOG_BYTES:
        advice = "End the processes that have it open: the log shrinks when the last one leaves."
        yield Finding("database", Level.WARN, text, advice)
    elif verdict == "long":
        yield Finding("database", Level.OK, f"{text}, sound as far as it was read in {CHECK_SECONDS:g} s")
    else:
        yield Finding("database", Level.OK, f"{text}, sound")


def _quick_check(file: Path) -> str:
    """Return "ok", "long" when time was up before the end, or what is wrong."""
    ends_at = time.monotonic() + CHECK_SECONDS
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=CHECK_SECONDS)) as reader:
            reader.set_progress_handler(lambda: time.monotonic() > ends_at, _STEPS)
            (verdict,) = reader.execute("PRAGMA quick_check(1)").fetchone()
            return str(verdict)
    except sqlite3.OperationalError as error:
        return "long" if "interrupted" in str(error) else str(error)
    except sqlite3.Error as error:
        return str(error)


def keys() -> Iterator[Finding]:
    """Tell which keys the environment has; never what they are."""
    states = (f"{preset.key_env} {'is set' if os.environ.get(preset.key_env) else 'not set'}" for preset in WITH_KEYS)
    yield Finding("keys", Level.OK, ", ".join(states))


def sandbox(settings: Settings | None, workspace: Path) -> Iterator[Finding]:
    """Try to put up the walls that commands may run behind."""
    mode = settings.sandbox.mode if settings else "off"
    try:
        Walls(Sandbox(mode="required")).around(["true"], workspace)
    except SandboxMissing as error:
        why = str(error).partition(", and ")[2] or str(error)
        if mode == "required":
            yield Finding("sandbox", Level.BAD, f"required by the settings, but {why}.", "Commands can't run before.")
        elif sys.platform == "linux":
            advice = "Debian, Ubuntu: apt-get install bubblewrap." if not shutil.which("bwrap") else ""
            yield Finding("sandbox", Level.WARN, f"none, commands run unconfined: {why}.", advice)
        else:
            yield Finding("sandbox", Level.WARN, "none on this system: commands run unconfined.")
        return
    if mode == "off":
        advice = 'Set sandbox.mode = "auto" to have commands run behind walls.'
        yield Finding("sandbox", Level.OK, "bubblewrap works, but is not used: the settings don't ask for it.", advice)
    else:
        network = "" if settings and settings.sandbox.network else ", without network"
        yield Finding("sandbox", Level.OK, f"bubblewrap: commands run behind walls{network}")


def programs() -> Iterator[Finding]:
    """Look for the programs that help."""
    for name, program, loss in (
        ("ripgrep", "rg", "searching files is slower"),
        ("git", "git", "the agent can't work with repositories, and skills can't come from them"),
    ):
        if found := shutil.which(program):
            yield Finding(name, Level.OK, found)
        else:
            advice = f"Debian, Ubuntu: apt-get install {name}; macOS: brew install {name}."
            yield Finding(name, Level.WARN, f"missing: {loss}.", advice)


def processes() -> Iterator[Finding]:
    """Tell how what a command started is found again."""
    from hark.processes.process_table import HAS_PROC

    if HAS_PROC:
        if Path("/proc/self/environ").exists():
            yield Finding("processes", Level.OK, "found in /proc: a stop reaches daemons, too")
        else:
            yield Finding("processes", Level.WARN, "/proc is not there: a stop may miss what a command started.")
    elif shutil.which("ps"):
        text = "found with ps: a daemon that leaves its process group can escape a stop."
        yield Finding("processes", Level.WARN, text, "Look for what a stopped command left behind.")
    else:
        yield Finding("processes", Level.BAD, "ps is missing: a stop may miss what a command started.", "Install ps.")


def voice(settings: Settings | None) -> Iterator[Finding]:
    """Report whether voice is set up."""
    if settings and settings.voice.stt != "off":
        yield Finding("voice", Level.OK, "set up: it is for the chats of the gateway (hark serve)")
    else:
        yield Finding("voice", Level.OK, "not set up: it belongs to the gateway (hark serve)")


def terminal() -> Iterator[Finding]:
    """Look at the terminal, and at what lies between it and here."""
    if not sys.stdout.isatty():
        yield Finding("terminal", Level.OK, "the output is no terminal: hark reads lines, without colours")
        return
    yield _terminal()
    if os.environ.get("TMUX"):
        yield _tmux()
    if os.environ.get("SSH_CONNECTION"):
        yield _ssh()


def _terminal() -> Finding:
    name = os.environ.get("TERM", "")
    size = os.get_terminal_size(sys.stdout.fileno())
    encoding = sys.stdout.encoding or "unknown"
    text = f"{name or 'unknown'}, {size.columns}x{size.lines}, {encoding}, {_colours(name)}"
    if name in ("", "dumb"):
        return Finding("terminal", Level.WARN, text, "It can't be drawn on: use hark --plain here.")
    if "utf" not in encoding.lower():
        return Finding("terminal", Level.WARN, text, "Set a UTF-8 locale, as LANG=C.UTF-8: else letters are missing.")
    if size.columns < LEAST_COLUMNS or size.lines < LEAST_LINES:
        advice = f"Make it {LEAST_COLUMNS}x{LEAST_LINES} or larger to see everything, or use hark --plain."
        return Finding("terminal", Level.WARN, text, advice)
    return Finding("terminal", Level.OK, text)


def _colours(name: str) -> str:
    if os.environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if os.environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256color" in name else "16 colours"


def _tmux() -> Finding:
    """tmux holds an Esc back for a while, to see whether it begins a longer key: that delays a stop."""
    milliseconds = _escape_time()
    if milliseconds is None:
        return Finding("tmux", Level.OK, "between the terminal and hark; its escape-time is not known")
    if milliseconds > SLOW_ESCAPE_MS:
        text = f"holds Esc back for {milliseconds} ms: a stop with Esc comes that much later."
        return Finding("tmux", Level.WARN, text, "tmux set -sg escape-time 10, in ~/.tmux.conf too (without `tmux`).")
    return Finding("tmux", Level.OK, f"holds Esc back for {milliseconds} ms, which nobody feels")


def _escape_time() -> int | None:
    program = shutil.which("tmux")
    if program is None:
        return None
    try:
        shown = subprocess.run(  # noqa: S603 - a fixed program, and bounded
            [program, "show", "-sv", "escape-time"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TMUX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    word = shown.stdout.decode(errors="replace").strip()
    return int(word) if word.isdecimal() else None


def _ssh() -> Finding:
    if os.environ.get("TMUX") or os.environ.get("STY"):
        return Finding("ssh", Level.OK, "over ssh, in a multiplexer: a broken connection leaves the work running")
    text = "over ssh: when the connection breaks, what runs is stopped and saved."
    return Finding("ssh", Level.OK, text, "Start hark in tmux to have it go on without you.")
