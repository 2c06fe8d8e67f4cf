"""`hark config`: find, show, check or trust the settings."""

import argparse
import sys

import msgspec

from hark.app import config as settings
from hark.app.secrets import without_secrets
from hark.app.shutdown import COMPLETED
from hark.app.trust import trust


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
    if options.action == "show":
        _print(msgspec.json.format(msgspec.json.encode(without_secrets(msgspec.to_builtins(loaded)))).decode())
    else:
        _print(f"{home / 'config.toml'}: the settings are right")
    return COMPLETED


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
