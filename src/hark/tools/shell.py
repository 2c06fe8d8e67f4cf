"""The tool that runs shell commands."""

import math
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, ToolOutput, ToolSpec
from hark.tools.arguments import check
from hark.tools.command import Command, start_command
from hark.tools.cookies import Owner
from hark.tools.finder import Seen
from hark.tools.printed import Printed
from hark.tools.process import Stopped

NAMED = 5

_SPEC = ToolSpec(
    name="shell",
    description=(
        "Run a command with bash in the workspace, and return what it printed and its exit code. "
        "Nobody is at its keyboard: use options that need no answers. "
        "Each call is a shell of its own, and what it leaves running in the background is stopped when it ends."
    ),
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command, as it would be typed into a shell."},
            "timeout_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Stop it after this many seconds. Without it, it runs until it ends or is stopped.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    is_changing=True,
    grace_seconds=0.9,
)

# Whatever would wait for a person at a terminal fails at once instead, and says so.
NOBODY_AT_THE_KEYBOARD = {
    "DEBIAN_FRONTEND": "noninteractive",
    "GIT_ASKPASS": "/bin/false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "PAGER": "cat",
    "SSH_ASKPASS": "/bin/false",
    "SUDO_ASKPASS": "/bin/false",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
}


class Shell:
    """Runs commands as `owner`, with this environment, or else the one of this process."""

    def __init__(self, owner: Owner, environment: Mapping[str, str] | None = None) -> None:
        self._owner = owner
        self._environment = environment

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        """Run the command to its end, or to its time limit. Cancelling ends all that it started."""
        if problem := _problem(arguments, context.workspace):
            return ToolOutput(problem, is_error=True, effect=Effect.NOT_STARTED)
        printed = Printed(context.output)
        try:
            command = self._start(arguments["command"], context.workspace, printed)
        except (OSError, ValueError) as error:
            return ToolOutput(f"The command could not be started: {error}.", is_error=True, effect=Effect.NOT_STARTED)
        limit: float = arguments.get("timeout_seconds") or math.inf
        stopped = Stopped()
        try:
            with anyio.move_on_after(limit) as scope:
                await command.finished()
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the stop itself
                stopped = await command.stop()
            printed.close()
            if stopped.left:
                context.output(f"\n[could not be stopped: {_names(stopped.left)}]")
                context.left_running(_names(stopped.left))
        if scope.cancelled_caught:
            return _timed_out(printed.text, limit, stopped)
        return _finished(printed.text, command.exit_code, stopped)

    def _start(self, text: str, workspace: Path, printed: Printed) -> Command:
        shell = shutil.which("bash") or shutil.which("sh")
        if shell is None:
            raise FileNotFoundError("neither bash nor sh is on the PATH")
        environment = {**(os.environ if self._environment is None else self._environment), **NOBODY_AT_THE_KEYBOARD}
        return start_command([shell, "-c", text], workspace, environment, self._owner.new_cookie(), printed.receive)


def _problem(arguments: Mapping[str, Any], workspace: Path) -> str | None:
    if problem := check(_SPEC, arguments):
        return problem
    limit = arguments.get("timeout_seconds")
    if limit is not None and not limit > 0:
        return "timeout_seconds: expected a number above 0. Leave it out for no limit."
    if not workspace.is_dir():
        return f"The workspace {workspace} is not a directory that exists. Create it, or open the session elsewhere."
    return None


def _finished(text: str, code: int | None, stopped: Stopped) -> ToolOutput:
    notes: list[str] = []
    if stopped.ended:
        several = "process" if len(stopped.ended) == 1 else "processes"
        notes.append(f"stopped {len(stopped.ended)} background {several} left behind: {_names(stopped.ended)}")
    if stopped.left:
        notes.append(f"could not be stopped, and still runs: {_names(stopped.left)}")
    if code is not None and code < 0:
        notes.append(f"ended by signal {-code}: {signal.strsignal(-code)}")
    else:
        notes.append(f"exit code {code}")
    return ToolOutput(_with_notes(text, notes), is_error=code != 0)


def _timed_out(text: str, limit: float, stopped: Stopped) -> ToolOutput:
    notes = [
        f"stopped after its time limit of {limit:g} seconds; it had not finished, and may have done part of its work"
    ]
    if stopped.left:
        notes.append(f"could not be stopped, and still runs: {_names(stopped.left)}")
    return ToolOutput(_with_notes(text, notes), is_error=True, effect=Effect.CANCELLED)


def _with_notes(text: str, notes: list[str]) -> str:
    lines = [f"[{note}]" for note in notes]
    return "\n".join([text.removesuffix("\n"), *lines] if text else lines)


def _names(processes: tuple[Seen, ...]) -> str:
    more = len(processes) - NAMED
    return ", ".join(map(str, processes[:NAMED])) + (f" and {more} more" if more > 0 else "")
