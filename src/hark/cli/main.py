"""The command line: imports only the requested command, runs it, and returns its exit code."""

import os
import sys

TYPE_CHECKING = False  # `hark --version` should not have to load typing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

# Each command is a module with `add_arguments(parser)` and `run(options)`, which returns a coroutine of its exit code.
COMMANDS = {
    "setup": "hark.cli.setup",
    "doctor": "hark.cli.doctor",
    "send": "hark.cli.send",
    "stop": "hark.cli.stop",
    "pause": "hark.cli.pause",
    "unpause": "hark.cli.unpause",
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
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    if command_line in (["--version"], ["-V"]):
        from hark.version import __version__

        sys.stdout.write(f"hark {__version__}\n")
        return 0
    from hark.app.shutdown import exit_on_signals

    exit_on_signals()  # first of all, because a signal during the imports would end in a traceback
    from importlib import import_module
    from io import TextIOWrapper

    # A character that the terminal lacks must not make the output fail.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportUnknownMemberType]
    name = command_line[0] if command_line and command_line[0] in COMMANDS else ""
    command = import_module(COMMANDS.get(name, CHAT))
    code = _run_command(command.run, _parse_options(command, name, command_line[1:] if name else command_line))
    if arguments is None:
        _end_process(code)
    return code


def _end_process(code: int) -> "NoReturn":
    """End the process without the interpreter's cleanup, in which a signal or a closed output changes the exit code."""
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # the stream is closed, or was never open
            stream.flush()
    os._exit(code)


def _parse_options(command: "ModuleType", name: str, arguments: "Sequence[str]") -> "argparse.Namespace":
    """Return the parsed options. Exits with code 2 and a usage message if the arguments are invalid."""
    from argparse import ArgumentParser

    parser = ArgumentParser(prog=f"hark {name}".strip())
    if not name:
        parser.description = "An AI agent that listens while it works."
        parser.epilog = f"Commands: {', '.join(COMMANDS)} (hark COMMAND --help)"
    elif (summary := (command.__doc__ or "").partition("`: ")[2].strip()) != "":
        parser.description = summary[0].upper() + summary[1:]
    command.add_arguments(parser)
    return parser.parse_args(arguments)


def _run_command(run: "Callable[[argparse.Namespace], Coroutine[Any, Any, int]]", options: "argparse.Namespace") -> int:
    """Run the command in a new event loop and return its exit code. Errors are printed on stderr."""
    import asyncio
    from contextlib import suppress

    from hark.app.settings import SettingsError
    from hark.app.shutdown import BAD_USAGE, FAILED
    from hark.protocol.store import StoreError
    from hark.text.cleanup import unwrap_error

    tune_garbage_collector()
    failure: BaseException | None = None
    try:
        return asyncio.run(run(options))
    except* (SettingsError, StoreError, ValueError, OSError) as group:
        failure = unwrap_error(group)
    if isinstance(failure, BrokenPipeError):
        # The reader of our output has left. Redirect stdout, so that the interpreter's final flush doesn't fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    with suppress(OSError):  # the terminal is closed
        sys.stderr.write(f"hark: {failure}\n")
    return BAD_USAGE if isinstance(failure, SettingsError | ValueError) else FAILED


def tune_garbage_collector() -> None:
    """Run full garbage collections less often. With thousands of sessions each one pauses the event loop."""
    import gc

    gc.set_threshold(50_000, 20, 20)


if __name__ == "__main__":
    sys.exit(main())
