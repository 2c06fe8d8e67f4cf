"""`hark config`: shows, checks or trusts the settings, or prints the path of the settings file."""

import argparse
from pathlib import Path

import msgspec

from hark.app.settings import config
from hark.app.settings.config import trust
from hark.app.settings.secrets import hide_secrets
from hark.app.settings.types import Settings
from hark.app.shutdown import BAD_USAGE, COMPLETED
from hark.cli.io.printing import print_error, print_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("path", "show", "check", "trust"), default="check")


async def run(options: argparse.Namespace) -> int:
    """Show, check or trust the settings, or print the path of the settings file. Keys are never printed."""
    home = config.home_directory()
    if options.action == "path":
        print_line(str(home / "config.toml"))
        return COMPLETED
    if options.action == "trust":
        trust(home, config.workspace())
        print_line(f"Trusted. The settings of {config.workspace()} apply from now on.")
        return COMPLETED
    loaded = config.load(home, config.workspace())
    if warning := config.ignored_settings_notice(home, config.workspace()):
        print_error(warning)
    if options.action == "show":
        print_line(msgspec.json.format(msgspec.json.encode(hide_secrets(msgspec.to_builtins(loaded)))).decode())
        return COMPLETED
    return _print_problems(home, loaded)


def _print_problems(home: Path, loaded: Settings) -> int:
    """Print all errors and warnings. Return the exit code."""
    from hark.app.settings.check import check_settings

    problems = check_settings(loaded)
    for line in problems.errors:
        print_error(line)
    for line in problems.warnings:
        print_error(f"warning: {line}")
    if problems.errors:
        return BAD_USAGE
    print_line(f"{home / 'config.toml'}: OK")
    return COMPLETED
