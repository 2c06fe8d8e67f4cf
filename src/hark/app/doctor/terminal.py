"""What `hark doctor` says about the terminal: what it can show, and what follows from where it is."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from hark.app.doctor.results import Finding, Level

LEAST_COLUMNS, LEAST_LINES = 80, 24
SLOW_ESCAPE_MS = 50
TMUX_SECONDS = 0.5


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
