"""The `hark doctor` checks of this machine: disk, database, keys, programs, processes, terminal."""

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

from hark.app.doctor.results import CheckResult, Level
from hark.app.settings.presets import KEYED_PRESETS
from hark.app.settings.types import Settings
from hark.disk.stored_json import damaged_files_notice
from hark.processes.sandbox import CommandSandbox, SandboxSettings, SandboxUnavailable

MIN_COLUMNS, MIN_LINES = 80, 24
SLOW_ESCAPE_MS = 50
TMUX_TIMEOUT_SECONDS = 0.5
LOW_DISK_BYTES = 500_000_000
MIN_DISK_BYTES = 20_000_000
LARGE_LOG_BYTES = 200_000_000
CHECK_SECONDS = 1.0
MAY_MISS = "a stop may miss processes that a command started."
# SQLite calls the progress handler, which checks the time limit, every so many virtual machine steps.
_PROGRESS_STEPS = 10_000


def check_version() -> Iterator[CheckResult]:
    """Report the versions of Hark, Python and the operating system."""
    from hark.version import __version__

    python = f"Python {platform.python_version()}"
    yield CheckResult("hark", Level.OK, f"{__version__} on {python}, {platform.system()} {platform.machine()}")


def check_home(home: Path) -> Iterator[CheckResult]:
    """Check that the home directory is writable, has enough free space, and has no damaged files."""
    directory = next((path for path in (home, *home.parents) if path.exists()), home)
    try:
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        advice = "Make it writable, or set HARK_HOME to another directory."
        yield CheckResult("home", Level.BAD, f"{home} is not writable: {error.strerror}.", advice)
        return
    if damaged := damaged_files_notice(home):
        yield CheckResult("home", Level.WARN, damaged)
    free = shutil.disk_usage(directory).free
    text = f"{home}, {free / 1e9:.1f} GB free"
    if free < MIN_DISK_BYTES:
        yield CheckResult("home", Level.BAD, text, "Free up disk space: sessions can't be saved.")
    elif free < LOW_DISK_BYTES:
        yield CheckResult("home", Level.WARN, text, "Free up disk space soon.")
    else:
        yield CheckResult("home", Level.OK, text)


def check_database(file: Path) -> Iterator[CheckResult]:
    """Check the session database, read-only and for at most one second."""
    if not file.exists():
        yield CheckResult("database", Level.OK, "not created yet; the first message creates it")
        return
    log = file.with_name(f"{file.name}-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    text = f"{file}, {file.stat().st_size / 1e6:.1f} MB" + (
        f" and {log_bytes / 1e6:.1f} MB of write-ahead log" if log_bytes else ""
    )
    integrity = _check_integrity(file)
    if integrity not in ("ok", "long"):
        advice = "Move the file away (with its -wal and -shm) to start with a new database, or restore a backup."
        yield CheckResult("database", Level.BAD, f"{text}: {integrity}.", advice)
    elif log_bytes > LARGE_LOG_BYTES:
        advice = "Quit all processes that use the database. The log shrinks when the last one exits."
        yield CheckResult("database", Level.WARN, text, advice)
    elif integrity == "long":
        yield CheckResult("database", Level.OK, f"{text}, no errors in the part checked within {CHECK_SECONDS:g} s")
    else:
        yield CheckResult("database", Level.OK, f"{text}, no errors")


def _check_integrity(file: Path) -> str:
    """Check the database's integrity. Return "ok", the error text, or "long" if the check timed out."""
    ends_at = time.monotonic() + CHECK_SECONDS
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=CHECK_SECONDS)) as reader:
            reader.set_progress_handler(lambda: time.monotonic() > ends_at, _PROGRESS_STEPS)
            (result,) = reader.execute("PRAGMA quick_check(1)").fetchone()
            return str(result)
    except sqlite3.OperationalError as error:
        return "long" if "interrupted" in str(error) else str(error)
    except sqlite3.Error as error:
        return str(error)


def check_keys() -> Iterator[CheckResult]:
    """Report which API key variables are set, without their values."""
    names = [preset.key_env for preset in KEYED_PRESETS]
    states = (f"{name} {'is set' if os.environ.get(name) else 'is not set'}" for name in names)
    yield CheckResult("keys", Level.OK, ", ".join(states))


def check_sandbox(settings: Settings | None, workspace: Path) -> Iterator[CheckResult]:
    """Check whether commands can run in the sandbox."""
    mode = settings.sandbox.mode if settings else "off"
    try:
        CommandSandbox(SandboxSettings(mode="required")).wrap(["true"], workspace)
    except SandboxUnavailable as error:
        why = str(error).partition(", and ")[2] or str(error)
        if mode == "required":
            advice = "Commands can't run until the sandbox works."
            yield CheckResult("sandbox", Level.BAD, f"required by the settings, but {why}.", advice)
        elif sys.platform == "linux":
            advice = "Debian, Ubuntu: apt-get install bubblewrap." if not shutil.which("bwrap") else ""
            yield CheckResult("sandbox", Level.WARN, f"not available, so commands run unconfined: {why}.", advice)
        else:
            yield CheckResult("sandbox", Level.WARN, "not available on this system, so commands run unconfined.")
        return
    if mode == "off":
        advice = 'Set sandbox.mode = "auto" to sandbox commands.'
        yield CheckResult("sandbox", Level.OK, "bubblewrap works, but the settings don't use it.", advice)
    else:
        network = "" if settings and settings.sandbox.network else ", without network"
        yield CheckResult("sandbox", Level.OK, f"bubblewrap: commands run sandboxed{network}")


def check_programs() -> Iterator[CheckResult]:
    """Check for the optional programs ripgrep and git."""
    for name, program, loss in (
        ("ripgrep", "rg", "file search is slower"),
        ("git", "git", "the agent can't work with repositories or install skills from them"),
    ):
        if found := shutil.which(program):
            yield CheckResult(name, Level.OK, found)
        else:
            advice = f"Debian, Ubuntu: apt-get install {name}; macOS: brew install {name}."
            yield CheckResult(name, Level.WARN, f"missing: {loss}.", advice)


def check_processes() -> Iterator[CheckResult]:
    """Report how a stop finds the processes that a command has started."""
    from hark.processes.process_table import HAS_PROC

    if HAS_PROC:
        if Path("/proc/self/environ").exists():
            yield CheckResult("processes", Level.OK, "found in /proc; a stop also kills daemons")
        else:
            yield CheckResult("processes", Level.WARN, f"/proc is missing: {MAY_MISS}")
    elif shutil.which("ps"):
        text = "found with ps; a daemon that leaves its process group can escape a stop."
        yield CheckResult("processes", Level.WARN, text, "Check for processes that a stopped command left running.")
    else:
        yield CheckResult("processes", Level.BAD, f"ps is missing: {MAY_MISS}", "Install ps.")


def check_voice(settings: Settings | None) -> Iterator[CheckResult]:
    """Report whether voice is set up."""
    if settings and settings.voice.stt != "off":
        yield CheckResult("voice", Level.OK, "set up, for the chat surfaces of the gateway (hark serve)")
    else:
        yield CheckResult("voice", Level.OK, "not set up; it is used by the gateway (hark serve)")


def check_terminal() -> Iterator[CheckResult]:
    """Check the terminal, and tmux or ssh if Hark runs inside them."""
    if not sys.stdout.isatty():
        yield CheckResult("terminal", Level.OK, "output is not a terminal, so hark runs line by line, without colours")
        return
    yield _terminal_result()
    if os.environ.get("TMUX"):
        yield _tmux_result()
    if os.environ.get("SSH_CONNECTION"):
        yield _ssh_result()


def _terminal_result() -> CheckResult:
    name = os.environ.get("TERM", "")
    size = os.get_terminal_size(sys.stdout.fileno())
    encoding = sys.stdout.encoding or "unknown"
    text = f"{name or 'unknown'}, {size.columns}x{size.lines}, {encoding}, {_colour_support(name)}"
    if name in ("", "dumb"):
        return CheckResult("terminal", Level.WARN, text, "The full-screen app can't run here. Use hark --plain.")
    if "utf" not in encoding.lower():
        advice = "Set a UTF-8 locale such as LANG=C.UTF-8. Without it, some characters are missing."
        return CheckResult("terminal", Level.WARN, text, advice)
    if size.columns < MIN_COLUMNS or size.lines < MIN_LINES:
        advice = f"Enlarge the window to at least {MIN_COLUMNS}x{MIN_LINES} to see everything, or use hark --plain."
        return CheckResult("terminal", Level.WARN, text, advice)
    return CheckResult("terminal", Level.OK, text)


def _colour_support(name: str) -> str:
    if os.environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if os.environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256color" in name else "16 colours"


def _tmux_result() -> CheckResult:
    """Report tmux's escape-time. tmux waits after Esc in case a longer key sequence follows, which delays a stop."""
    milliseconds = _tmux_escape_milliseconds()
    if milliseconds is None:
        return CheckResult("tmux", Level.OK, "hark runs inside tmux; its escape-time is unknown")
    if milliseconds > SLOW_ESCAPE_MS:
        text = f"delays Esc by {milliseconds} ms, which also delays every stop with Esc."
        advice = "Run `tmux set -sg escape-time 10`, and add it to ~/.tmux.conf (without `tmux`)."
        return CheckResult("tmux", Level.WARN, text, advice)
    return CheckResult("tmux", Level.OK, f"delays Esc by {milliseconds} ms (fine)")


def _tmux_escape_milliseconds() -> int | None:
    program = shutil.which("tmux")
    if program is None:
        return None
    try:
        result = subprocess.run(  # noqa: S603 - a fixed program, and bounded
            [program, "show", "-sv", "escape-time"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TMUX_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    output = result.stdout.decode(errors="replace").strip()
    return int(output) if output.isdecimal() else None


def _ssh_result() -> CheckResult:
    if os.environ.get("TMUX") or os.environ.get("STY"):
        return CheckResult("ssh", Level.OK, "over ssh, in a multiplexer: work continues if the connection drops")
    text = "over ssh: if the connection drops, the running turn is stopped and saved."
    return CheckResult("ssh", Level.OK, text, "Start hark in tmux to let it continue without a connection.")
