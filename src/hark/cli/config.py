"""`hark config`: find, show, check or trust the settings."""

import argparse
from pathlib import Path

import msgspec

from hark.app.settings import config
from hark.app.settings.config import trust
from hark.app.settings.secrets import without_secrets
from hark.app.settings.types import Settings
from hark.app.shutdown import BAD_USAGE, COMPLETED
from hark.cli.io.printing import print_error, print_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("path", "show", "check", "trust"), default="check")


async def run(options: argparse.Namespace) -> int:
    """Show, check or find the settings. Keys are never printed."""
    home = config.home_directory()
    if options.action == "path":
        print_line(str(home / "config.toml"))
        return COMPLETED
    if options.action == "trust":
        trust(home, config.workspace())
        print_line(f"The settings of {config.workspace()} hold from now on.")
        return COMPLETED
    loaded = config.load(home, config.workspace())
    if left := config.left_out(home, config.workspace()):
        print_error(left)
    if options.action == "show":
        print_line(msgspec.json.format(msgspec.json.encode(without_secrets(msgspec.to_builtins(loaded)))).decode())
        return COMPLETED
    return _check(home, loaded)


def _check(home: Path, loaded: Settings) -> int:
    """Tell all that is wrong or suspicious."""
    from hark.app.settings.check import check

    checked = check(loaded)
    for line in checked.errors:
        print_error(line)
    for line in checked.warnings:
        print_error(f"warning: {line}")
    if checked.errors:
        return BAD_USAGE
    print_line(f"{home / 'config.toml'}: the settings are right")
    return COMPLETED
