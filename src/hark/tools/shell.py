"""The `shell` tool: runs shell commands."""

import math
import signal
from typing import Annotated

import anyio

from hark.processes.launcher import Launcher
from hark.processes.output import OutputBuffer, new_output_file
from hark.processes.process_table import ProcessInfo
from hark.processes.shell import ShellStates, start_shell
from hark.processes.tree import StopResult
from hark.protocol.messages import Effect
from hark.protocol.tool import CallContext, PredictedEffects, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, doc, tool_spec

MAX_NAMED_PROCESSES = 5

TimeLimit = Annotated[float, doc("The time limit in seconds (default: no limit).", gt=0)]


class ShellArguments(ToolArguments, frozen=True):
    """Run a command with bash and return its output and its exit code.

    The first call starts in the workspace. The working directory and exported variables carry over to the next call;
    functions and aliases do not. There is no keyboard input: use options that need no answers. Long output is
    truncated in the middle, and the result names a file with the full output. Background processes of a command are
    stopped when it ends: use `process` for servers and watchers.
    """

    command: Annotated[str, doc("The command, as typed into a shell.")]
    timeout_seconds: TimeLimit = math.inf


class ShellTool:
    """The tool that runs commands. `states` stores each session's folder and variables for this and other tools."""

    def __init__(self, launcher: Launcher, states: ShellStates | None = None) -> None:
        self._launcher = launcher
        self._states = states or ShellStates()
        self.spec = tool_spec(
            ShellArguments,
            "shell",
            is_changing=True,
            grace_seconds=0.9,
            predict=lambda arguments: command_effects(arguments.command, arguments.command),
            folder_of=self._states.get_folder,
        )

    async def run(self, arguments: ShellArguments, context: CallContext) -> ToolOutput:
        """Run the command until it ends or reaches its time limit. Cancelling stops every process that it started."""
        workspace, limit_seconds = context.workspace, arguments.timeout_seconds
        if not workspace.is_dir():
            why = f"The workspace {workspace} is not an existing directory."
            raise ToolError(f"{why} Create it, or open the session in another directory.")
        output = OutputBuffer(context.output, new_output_file(self._launcher.outputs_folder, "shell"))
        state, note = self._states.get_state(context.session, workspace, self._launcher.environment)
        try:
            command = start_shell(self._launcher, arguments.command, workspace, state, output.receive)
        except (OSError, ValueError) as error:
            raise ToolError(f"The command could not be started: {error}.") from error
        stopped = StopResult()
        try:
            with anyio.move_on_after(limit_seconds) as scope:
                await command.wait_until_finished()
        finally:
            with anyio.CancelScope(shield=True):  # the stop has its own time limit
                stopped = await command.stop()
            output.close()
            if stopped.left:
                context.output(f"\n[could not be stopped: {format_processes(stopped.left)}]")
                context.report_unstopped(format_processes(stopped.left))
        notes = [note] if note else []
        if scope.cancelled_caught:
            return _timeout_output(output.text, limit_seconds, stopped, notes)
        if command.state:
            self._states.store(context.session, command.state)
        return _finished_output(output.text, command.exit_code, stopped, notes)


def command_effects(command: str, subject: str) -> PredictedEffects:
    """Return the predicted effects of a call that runs a command. Rules are matched against `subject`."""
    return PredictedEffects(is_changing=True, subject=subject, command=command, writes=None)


def _finished_output(text: str, code: int | None, stopped: StopResult, notes: list[str]) -> ToolOutput:
    if stopped.ended:
        noun = "process" if len(stopped.ended) == 1 else "processes"
        notes.append(f"stopped {len(stopped.ended)} leftover background {noun}: {format_processes(stopped.ended)}")
    if stopped.left:
        notes.append(f"could not be stopped: {format_processes(stopped.left)}")
    if code is not None and code < 0:
        notes.append(f"ended by signal {-code}: {signal.strsignal(-code)}")
    else:
        notes.append(f"exit code {code}")
    return ToolOutput(_append_notes(text, notes), is_error=code != 0)


def _timeout_output(text: str, seconds: float, stopped: StopResult, notes: list[str]) -> ToolOutput:
    notes.append(
        f"stopped after its time limit of {seconds:g} seconds; it had not finished, and may have done part of its work"
    )
    if stopped.left:
        notes.append(f"could not be stopped: {format_processes(stopped.left)}")
    return ToolOutput(_append_notes(text, notes), is_error=True, effect=Effect.CANCELLED)


def _append_notes(text: str, notes: list[str]) -> str:
    lines = [f"[{note}]" for note in notes]
    return "\n".join([text.removesuffix("\n"), *lines] if text else lines)


def format_processes(processes: tuple[ProcessInfo, ...]) -> str:
    """Format the processes as comma-separated text. Long lists are truncated."""
    more = len(processes) - MAX_NAMED_PROCESSES
    return ", ".join(map(str, processes[:MAX_NAMED_PROCESSES])) + (f" and {more} more" if more > 0 else "")
