"""Runs a parsed command, and turns its end into an exit code."""

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Coroutine
from functools import partial
from typing import Any

from hark.app.settings import Settings, SettingsError
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.engine.text import first_of
from hark.protocol.store import StoreError


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
    from hark.app.first_line import typed_while

    def load() -> None:
        import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]

        import hark.app.terminal  # pyright: ignore[reportUnusedImport]
        import hark.store.sqlite  # pyright: ignore[reportUnusedImport] # noqa: F401

    typed = typed_while(load)
    if typed.is_left:
        return COMPLETED
    from hark.app.terminal import terminal

    return _loop(terminal(options, typed))


def _command(options: argparse.Namespace) -> Coroutine[Any, Any, int]:
    match options.command:
        case "prompt":
            from hark.app.chat import prompt

            return prompt(options)
        case "chat":
            from hark.app.chat import chat

            return chat(options)
        case "setup":
            from hark.app.setup import setup

            return setup(options)
        case "doctor":
            from hark.app.doctor import doctor

            return doctor(options)
        case "send":
            from hark.app.remote import send

            return send(options)
        case "stop":
            from hark.app.remote import stop

            return stop(options)
        case "queue":
            from hark.app.remote import queue

            return queue(options)
        case "config":
            from hark.app.config_command import config

            return config(options)
        case "trace":
            from hark.app.trace_command import trace

            return trace(options)
        case "mcp":
            from hark.app.mcp_commands import mcp

            return mcp(options)
        case "skills":
            from hark.app.skills_commands import skills

            options.value = " ".join(options.value)
            return skills(options, _settings().skills)
        case "serve":
            from hark.app.gateway import run_surfaces
            from hark.app.schedules.runner import run_schedules
            from hark.app.serve import serve
            from hark.app.voice import warm_up
            from hark.surfaces.web.hooks import Hooks

            hooks = Hooks()
            beside = [partial(run_surfaces, hooks=hooks), run_schedules, warm_up]
            return serve(options, _settings, beside, hooks)
        case "schedule":
            from hark.app.schedules.command import schedule

            return schedule(options)
        case "pair":
            from hark.app.pairing import pair

            return pair(options)
        case "acp":
            from hark.app.acp import acp

            return acp(options)
        case _:
            from hark.app.session_commands import sessions

            return sessions(options)


def _settings() -> Settings:
    from hark.app import config

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
