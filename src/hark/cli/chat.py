"""`hark`: a chat in the terminal app or line by line (--plain), or one prompt (-p)."""

import argparse
import os
import sys
from collections.abc import Coroutine
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "-p", "--prompt", metavar="PROMPT", help="run one prompt; print the answer on stdout and progress on stderr"
    )
    parser.add_argument("--output", choices=("text", "json", "events"), default="text", help="the output format of -p")
    parser.add_argument("--session", metavar="ID", help="the session to use")
    parser.add_argument("--model", metavar="ROUTE", help="the route to use")
    parser.add_argument("--yes", action="store_true", help="allow every tool call without asking")
    parser.add_argument(
        "--timeout", type=_positive_number, metavar="SECONDS", help="stop the turn after this many seconds"
    )
    parser.add_argument("--max-cost", type=_positive_number, metavar="USD", help="stop the turn at this cost")
    parser.add_argument("--max-steps", type=_positive_integer, metavar="N", help="stop the turn after this many steps")
    parser.add_argument("-c", "--continue", dest="continues", action="store_true", help="continue the last session")
    parser.add_argument("-r", "--resume", metavar="ID", help="resume a session")
    parser.add_argument(
        "--plain", action="store_true", help="run line by line, for simple terminals and screen readers"
    )
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")


def run(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Return the coroutine for one prompt, the terminal app or the line-by-line chat, depending on the options."""
    if options.prompt is not None:
        from hark.cli.prompt import run_prompt

        return run_prompt(options)
    if _can_show_app(options):
        return _load_terminal_app(options)
    from hark.cli.plain import run_plain

    return run_plain(options)


def _can_show_app(options: argparse.Namespace) -> bool:
    """Return whether the terminal can show the full-screen app, and the user wants it."""
    return not options.plain and sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _load_terminal_app(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Load the terminal app. Text that the user types while it loads is buffered."""
    from hark.app.shutdown import exit_on_signals
    from hark.surfaces.terminal.early_input import show_input_while_loading

    def load() -> None:
        import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]

        import hark.cli.terminal  # pyright: ignore[reportUnusedImport]
        import hark.store.sqlite  # pyright: ignore[reportUnusedImport] # noqa: F401

    early_line = show_input_while_loading(load, exit_on_signals)
    from hark.cli.terminal import run_terminal

    return run_terminal(options, early_line)


def _positive_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _positive_integer(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return number
