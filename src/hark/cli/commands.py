"""Runs a parsed command, and turns its end into an exit code."""

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from typing import Any

from hark.app.settings.types import Settings, SettingsError
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.protocol.store import StoreError
from hark.text.clean import first_of

Command = Callable[[argparse.Namespace], Coroutine[Any, Any, int]]


def run(options: argparse.Namespace) -> int:
    """Run the command; errors become a sentence on stderr."""
    try:
        if options.command == "chat" and _has_screen(options):
            return _terminal(options)
        return _loop(_command(options))
    except SettingsError as error:
        sys.stderr.write(f"hark: {error}\n")
        return BAD_USAGE
    except BrokenPipeError:
        # Whoever read our output has left: nothing to say and nobody to hear it, at the interpreter's end neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (StoreError, OSError) as error:
        sys.stderr.write(f"hark: {error}\n")
        return FAILED
    except ValueError as error:
        sys.stderr.write(f"hark: {error}\n")
        return BAD_USAGE


def _has_screen(options: argparse.Namespace) -> bool:
    """Tell whether there is a terminal that can be drawn on, and a person who wants that."""
    return not options.plain and sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _terminal(options: argparse.Namespace) -> int:
    """Run the terminal app; what is typed while it loads is not lost."""
    from hark.cli.io.early_input import typed_while

    def load() -> None:
        import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]

        import hark.cli.terminal  # pyright: ignore[reportUnusedImport]
        import hark.store.sqlite  # pyright: ignore[reportUnusedImport] # noqa: F401

    typed = typed_while(load)
    if typed.is_left:
        return COMPLETED
    from hark.cli.terminal import terminal

    return _loop(terminal(options, typed))


# Where each command's code is: a module of hark.cli, and a coroutine of it. Only what is run is imported.
_PLACES = {
    "prompt": ("cli.chat", "prompt"),
    "chat": ("cli.chat", "chat"),
    "setup": ("cli.setup", "setup"),
    "doctor": ("app.doctor.report", "doctor"),
    "send": ("cli.remote", "send"),
    "stop": ("cli.remote", "stop"),
    "queue": ("cli.remote", "queue"),
    "sessions": ("cli.sessions", "sessions"),
    "config": ("cli.config", "config"),
    "trace": ("cli.trace", "trace"),
    "mcp": ("cli.mcp", "mcp"),
    "schedule": ("cli.schedule", "schedule"),
    "pair": ("app.pairing", "pair"),
    "acp": ("cli.acp", "acp"),
}


def _command(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    match options.command:
        case "serve":
            return _serve(options)
        case "skills":
            from hark.cli.skills.command import skills

            options.value = " ".join(options.value)
            return skills(options, _settings().skills)
        case name:
            module, function = _PLACES[name]
            command: Command = vars(import_module(f"hark.{module}"))[function]
            return command(options)


def _serve(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Serve, with all that belongs beside the web server."""
    from hark.cli.serve.chat_surfaces import run_surfaces
    from hark.cli.serve.command import serve, warm_up_voice
    from hark.schedules.runner import run_schedules
    from hark.surfaces.web.hooks import Hooks

    hooks = Hooks()
    beside = [partial(run_surfaces, hooks=hooks), run_schedules, warm_up_voice]
    return serve(options, _settings, beside, hooks)


def _settings() -> Settings:
    from hark.app.settings import config

    return config.load(config.home_directory(), config.workspace())


def calm_collector() -> None:
    """Have the garbage collector look at everything less often: with thousands of sessions each look stops them all."""
    gc.set_threshold(50_000, 20, 20)


def _loop(command: Coroutine[Any, Any, int]) -> int:
    """Run on a loop of our own. Store errors may come wrapped by task groups: the first one is told."""
    calm_collector()
    failure: BaseException | None = None
    code = FAILED
    try:
        code = asyncio.run(command)
    except* (SettingsError, StoreError, ValueError, OSError) as group:
        failure = first_of(group)  # raised below: what is raised in here is wrapped again by some Pythons
    if failure is not None:
        raise failure from None
    return code
