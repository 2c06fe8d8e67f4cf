"""`hark`: a chat in the terminal app or line by line (--plain), or one prompt (-p)."""

import argparse
import os
import sys
from collections.abc import Coroutine
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-p", "--prompt", metavar="PROMPT", help="one shot: the answer on stdout, progress on stderr")
    parser.add_argument("--output", choices=("text", "json", "events"), default="text", help="what -p prints")
    parser.add_argument("--session", metavar="ID", help="the session to use")
    parser.add_argument("--model", metavar="ROUTE", help="the route to use")
    parser.add_argument("--yes", action="store_true", help="allow every tool without asking")
    parser.add_argument("--timeout", type=_above_zero, metavar="SECONDS", help="end the turn after so long")
    parser.add_argument("--max-cost", type=_above_zero, metavar="USD", help="end the turn when it cost that much")
    parser.add_argument("--max-steps", type=_count, metavar="N", help="end the turn after so many steps")
    parser.add_argument("-c", "--continue", dest="continues", action="store_true", help="continue the last session")
    parser.add_argument("-r", "--resume", metavar="ID", help="resume a session")
    parser.add_argument("--plain", action="store_true", help="a line-by-line terminal")
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")


def run(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Return the one prompt, the terminal app or the line-by-line chat, whichever is wanted and possible."""
    if options.prompt is not None:
        from hark.cli.prompt import prompt

        return prompt(options)
    if _has_screen(options):
        return _terminal(options)
    from hark.cli.plain import plain

    return plain(options)


def _has_screen(options: argparse.Namespace) -> bool:
    """Return whether there is a terminal that can be drawn on, and a user who wants that."""
    return not options.plain and sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _terminal(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Load the terminal app; what is typed meanwhile is not lost."""
    from hark.cli.io.early_input import typed_while

    def load() -> None:
        import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]

        import hark.cli.terminal  # pyright: ignore[reportUnusedImport]
        import hark.store.sqlite  # pyright: ignore[reportUnusedImport] # noqa: F401

    typed = typed_while(load)
    from hark.cli.terminal import terminal

    return terminal(options, typed)


def _above_zero(word: str) -> float:
    number = float(word)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not a number above 0")
    return number


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a number from 1 on")
    return number
