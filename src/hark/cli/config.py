"""`hark config`: find, show, check or trust the settings."""

import argparse
import sys
from pathlib import Path

import msgspec

from hark.app.settings import config as settings
from hark.app.settings.secrets import without_secrets
from hark.app.settings.trust import trust
from hark.app.settings.types import Settings
from hark.app.shutdown import BAD_USAGE, COMPLETED


async def config(options: argparse.Namespace) -> int:
    """Show, check or find the settings. Keys are never printed."""
    home = settings.home_directory()
    if options.action == "path":
        _print(str(home / "config.toml"))
        return COMPLETED
    if options.action == "trust":
        trust(home, settings.workspace())
        _print(f"The settings of {settings.workspace()} hold from now on.")
        return COMPLETED
    loaded = settings.load(home, settings.workspace())
    if left := settings.left_out(home, settings.workspace()):
        _tell(left)
    if options.action == "show":
        _print(msgspec.json.format(msgspec.json.encode(without_secrets(msgspec.to_builtins(loaded)))).decode())
        return COMPLETED
    return _check(home, loaded)


def _check(home: Path, loaded: Settings) -> int:
    """Tell all that is wrong or suspicious."""
    from hark.app.settings.check import check

    checked = check(loaded)
    for line in checked.errors:
        _tell(line)
    for line in checked.warnings:
        _tell(f"warning: {line}")
    if checked.errors:
        return BAD_USAGE
    _print(f"{home / 'config.toml'}: the settings are right")
    return COMPLETED


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _tell(text: str) -> None:
    sys.stderr.write(f"hark: {text}\n")
