"""The command line: finds out which command is wanted, imports that alone, and turns its end into an exit code."""

import sys

TYPE_CHECKING = False  # `hark --version` should not wait for typing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine, Sequence
    from types import ModuleType
    from typing import Any

# Each command is a module with `add_arguments(parser)` and `run(options)`, which returns a coroutine of its exit code.
COMMANDS = {
    "setup": "hark.cli.setup",
    "doctor": "hark.cli.doctor",
    "send": "hark.cli.send",
    "stop": "hark.cli.stop",
    "queue": "hark.cli.queue",
    "sessions": "hark.cli.sessions",
    "trace": "hark.cli.trace",
    "config": "hark.cli.config",
    "mcp": "hark.cli.mcp",
    "skills": "hark.cli.skills.command",
    "acp": "hark.cli.acp",
    "serve": "hark.cli.serve.command",
    "pair": "hark.cli.pair",
    "schedule": "hark.cli.schedule",
}
CHAT = "hark.cli.chat"


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        from hark.version import __version__

        sys.stdout.write(f"hark {__version__}\n")
        return 0
    from importlib import import_module
    from io import TextIOWrapper

    from hark.app.shutdown import leave_at_once

    leave_at_once()
    # No letter that a terminal lacks may cost an answer.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportUnknownMemberType]
    name = words[0] if words and words[0] in COMMANDS else ""
    command = import_module(COMMANDS.get(name, CHAT))
    return _exit_code(command.run, _parse(command, name, words[1:] if name else words))


def _parse(command: "ModuleType", name: str, words: "Sequence[str]") -> "argparse.Namespace":
    """Return the options; exits with code 2 and a usage line when the words make no sense."""
    from argparse import ArgumentParser

    parser = ArgumentParser(prog=f"hark {name}".strip())
    if not name:
        parser.description = "An AI agent that listens while it works."
        parser.epilog = f"Commands: {', '.join(COMMANDS)} (hark COMMAND --help)"
    command.add_arguments(parser)
    return parser.parse_args(words)


def _exit_code(run: "Callable[[argparse.Namespace], Coroutine[Any, Any, int]]", options: "argparse.Namespace") -> int:
    """Run the command on a loop of its own. Errors, which task groups may have wrapped, become a sentence on stderr."""
    import asyncio
    import os

    from hark.app.settings import SettingsError
    from hark.app.shutdown import BAD_USAGE, FAILED
    from hark.protocol.store import StoreError
    from hark.text.clean import first_of

    calm_collector()
    failure: BaseException | None = None
    try:
        return asyncio.run(run(options))
    except* (SettingsError, StoreError, ValueError, OSError) as group:
        failure = first_of(group)
    if isinstance(failure, BrokenPipeError):
        # Whoever read our output has left: nothing to say and nobody to hear it, at the interpreter's end neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    sys.stderr.write(f"hark: {failure}\n")
    return BAD_USAGE if isinstance(failure, SettingsError | ValueError) else FAILED


def calm_collector() -> None:
    """Run full garbage collections less often. With thousands of sessions each one pauses the event loop."""
    import gc

    gc.set_threshold(50_000, 20, 20)


if __name__ == "__main__":
    sys.exit(main())
