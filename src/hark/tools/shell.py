"""The tool that runs shell commands."""

import math
import signal
from typing import Annotated

import anyio

from hark.processes.output import OutputBuffer, new_output
from hark.processes.process_table import Seen
from hark.processes.shell import ShellStates, start_shell
from hark.processes.start import Launcher
from hark.processes.tree import StopResult
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, Foreseen, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

NAMED = 5

TimeLimit = Annotated[
    float, doc("Stop it after this many seconds. Without it, it runs until it ends or is stopped.", gt=0)
]


class ShellArguments(ToolArguments, frozen=True):
    """Run a command with bash and return what it printed and its exit code.

    The first call begins in the workspace; the working directory and exported variables carry over to the next call,
    functions and aliases do not. Nobody is at its keyboard: use options that need no answers. Long output is cut in the
    middle, and the result names the file that has all of it. What a command leaves running in the background is stopped
    when it ends: use `process` for servers and watchers.
    """

    command: Annotated[str, doc("The command, as it would be typed into a shell.")]
    timeout_seconds: TimeLimit = math.inf


class Shell:
    """Runs commands. Each session's folder and variables are in `states`, which it may share with other tools."""

    def __init__(self, launcher: Launcher, states: ShellStates | None = None) -> None:
        self._launcher = launcher
        self._states = states or ShellStates()
        self.spec = tool_spec(
            ShellArguments,
            "shell",
            is_changing=True,
            grace_seconds=0.9,
            foresee=lambda arguments: runs_command(arguments.command, arguments.command),
            folder_of=self._states.folder,
        )

    async def run(self, arguments: ShellArguments, context: CallContext) -> ToolOutput:
        """Run the command to its end, or to its time limit. Cancelling ends all that it started."""
        workspace, limit = context.workspace, arguments.timeout_seconds
        if not workspace.is_dir():
            why = f"The workspace {workspace} is not a directory that exists."
            raise ToolError(f"{why} Create it, or open the session elsewhere.")
        printed = OutputBuffer(context.output, new_output(self._launcher.outputs, "shell"))
        state, note = self._states.of(context.session, workspace, self._launcher.environment)
        try:
            command = start_shell(self._launcher, arguments.command, workspace, state, printed.receive)
        except (OSError, ValueError) as error:
            raise ToolError(f"The command could not be started: {error}.") from error
        stopped = StopResult()
        try:
            with anyio.move_on_after(limit) as scope:
                await command.finished()
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the stop itself
                stopped = await command.stop()
            printed.close()
            if stopped.left:
                context.output(f"\n[could not be stopped: {names(stopped.left)}]")
                context.left_running(names(stopped.left))
        notes = [note] if note else []
        if scope.cancelled_caught:
            return _timed_out(printed.text, limit, stopped, notes)
        if command.state:
            self._states.keep(context.session, command.state)
        return _finished(printed.text, command.exit_code, stopped, notes)


def runs_command(command: str, subject: str) -> Foreseen:
    """Return what a call that runs a command would do; rules are matched with `subject`."""
    return Foreseen(is_changing=True, subject=subject, command=command, writes=None)


def _finished(text: str, code: int | None, stopped: StopResult, notes: list[str]) -> ToolOutput:
    if stopped.ended:
        several = "process" if len(stopped.ended) == 1 else "processes"
        notes.append(f"stopped {len(stopped.ended)} background {several} left behind: {names(stopped.ended)}")
    if stopped.left:
        notes.append(f"could not be stopped, and still runs: {names(stopped.left)}")
    if code is not None and code < 0:
        notes.append(f"ended by signal {-code}: {signal.strsignal(-code)}")
    else:
        notes.append(f"exit code {code}")
    return ToolOutput(_with_notes(text, notes), is_error=code != 0)


def _timed_out(text: str, limit: float, stopped: StopResult, notes: list[str]) -> ToolOutput:
    notes.append(
        f"stopped after its time limit of {limit:g} seconds; it had not finished, and may have done part of its work"
    )
    if stopped.left:
        notes.append(f"could not be stopped, and still runs: {names(stopped.left)}")
    return ToolOutput(_with_notes(text, notes), is_error=True, effect=Effect.CANCELLED)


def _with_notes(text: str, notes: list[str]) -> str:
    lines = [f"[{note}]" for note in notes]
    return "\n".join([text.removesuffix("\n"), *lines] if text else lines)


def names(processes: tuple[Seen, ...]) -> str:
    """Return the processes in a line."""
    more = len(processes) - NAMED
    return ", ".join(map(str, processes[:NAMED])) + (f" and {more} more" if more > 0 else "")
