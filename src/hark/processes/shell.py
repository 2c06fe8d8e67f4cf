"""Shell commands, and the current folder and variables that carry over to the session's next command."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from hark.processes.cookies import COOKIE_NAME
from hark.processes.launcher import Launch, Launcher, RunningCommand, create_channel, wait_for_first
from hark.processes.pipe import PipeReader, pass_to_child
from hark.processes.process_table import ProcessInfo
from hark.processes.tree import GRACE_SECONDS, StopResult

# Never carried over: each call has its own cookie, and bash sets or obeys the others before the command runs.
_PER_SHELL_VARIABLES = frozenset({COOKIE_NAME, "_", "SHLVL", "PWD", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"})
# Exported functions, and the variables of the wrapper script if the command exports everything.
_EXCLUDED_PREFIXES = ("BASH_FUNC_", "__hark_")
STATE_END = b"\0\0"
# The shell reads its wrapper script from this variable. As an argument, it would clutter the process list.
SCRIPT_NAME = "HARK_SHELL"
# Linux limits one argument to 128 KiB, so a long command is passed in pieces. A character has at most four bytes.
PIECE_CHARACTERS = 32_000

# Joins its arguments to a command and runs it as `bash -c` would. On exit it reports its state, runs the command's own
# exit trap, then waits for a line. While it waits, orphaned descendants are its children and can be found. If it is
# being stopped, it may exit at once without a report. A trap must see the exit code even under `set -e`, where only a
# condition may fail. In POSIX mode bash can't define a function named `trap`.
SCRIPT = r"""
unset HARK_SHELL; __hark_posix=; case :$SHELLOPTS: in *:posix:*) __hark_posix=1; set +o posix;; esac;
__hark_report() { { set +x; } 2>/dev/null;
  if [ "$BASH_SUBSHELL" = 0 ] && ! builtin read -t 0 -u FD; then
    { builtin pwd; builtin printf '\0'; ENV -0; builtin printf '\0'; } >&FD;
  fi; return "$1"; };
__hark_wait() { exec >&- 2>&-; builtin printf '\0' >&FD; builtin read -r -u FD; };
__hark_exit='if { __hark_report $?; } 2>/dev/null; then eval "$__hark_trap"; else eval "$__hark_trap"; fi;
  __hark_wait';
__hark_trap=;
trap() { builtin trap "$@" || return;
  if [ "$BASH_SUBSHELL" = 0 ]; then
    eval "set -- $(builtin trap -p EXIT)";
    if [ "${3-}" != "$__hark_exit" ]; then __hark_trap=${3-}; builtin trap "$__hark_exit" EXIT; fi;
  fi; };
builtin trap "$__hark_exit" EXIT; if [ "$__hark_posix" ]; then set -o posix; fi;
__hark_command=; for __hark_piece; do __hark_command+=$__hark_piece; done; set --; eval "$__hark_command"
"""


class ShellState(Struct, frozen=True):
    """A shell's current folder and exported variables at exit."""

    folder: Path
    environment: Mapping[str, str]


class ShellStates:
    """The shell state of each session. Stored in memory only, because it may contain secrets."""

    def __init__(self) -> None:
        self._states: dict[str, ShellState] = {}

    def get_state(self, session: str, workspace: Path, environment: Mapping[str, str]) -> tuple[ShellState, str]:
        """Return a session's shell state, and a notice or "".

        A new session starts in the workspace with this environment. If the session's folder no longer exists, the
        state is reset to the workspace and the notice says so.
        """
        state = self._states.get(session)
        if state is None:
            return ShellState(workspace, environment), ""
        fixed = {name: environment[name] for name in _PER_SHELL_VARIABLES if name in environment}
        variables = {**state.environment, **fixed}
        if state.folder.is_dir():
            return ShellState(state.folder, variables), ""
        return ShellState(
            workspace, variables
        ), f"the folder {state.folder} no longer exists, so this ran in {workspace}"

    def get_folder(self, session: str) -> Path | None:
        """Return the folder in which the session's next shell starts, or None for the workspace."""
        state = self._states.get(session)
        return state.folder if state and state.folder.is_dir() else None

    def store(self, session: str, state: ShellState) -> None:
        """Store the state with which the session's next shell starts."""
        self._states[session] = state

    def forget(self, session: str) -> None:
        """Remove the state of a session that ended or was reset."""
        self._states.pop(session, None)


def parse_state(report: bytes) -> ShellState | None:
    """Parse a shell's report: folder and variables, each followed by a NUL. Return None if the folder is missing."""
    folder, *entries = report.split(b"\0")
    if not folder:
        return None
    pairs = (entry.decode(errors="surrogateescape").partition("=") for entry in entries if b"=" in entry)
    environment = {
        name: value
        for name, _, value in pairs
        if name not in _PER_SHELL_VARIABLES and not name.startswith(_EXCLUDED_PREFIXES)
    }
    return ShellState(Path(folder.removesuffix(b"\n").decode(errors="surrogateescape")), environment)


class ShellCommand(RunningCommand):
    """A running shell command. The code that creates it must call `stop`, even if the command ends on its own."""

    def __init__(self, launch: Launch, receive: Callable[[bytes], None], channel_descriptor: int) -> None:
        """Start the command. `channel_descriptor` is our end of its control channel."""
        super().__init__(launch, receive)
        self._channel = _ControlChannel(channel_descriptor)
        # In a sandbox the shell isn't the first process. Its leftovers are then found through the sandbox's first
        # process.
        self._is_sandboxed = launch.is_sandboxed
        self._ended: tuple[ProcessInfo, ...] = ()

    async def wait_until_finished(self) -> None:
        """Wait until the command has ended, its output is read and leftover processes are stopped. Safe to cancel."""
        await wait_for_first(self.tree.wait_until_root_exited, self._channel.is_waiting.wait)
        if self._channel.is_waiting.is_set():
            await self.output.wait_until_ended()
            if not self._is_sandboxed and self.tree.descendants():
                self._ended = (await self.tree.stop_descendants()).ended
            self._channel.release()
        await super().wait_until_finished()

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> StopResult:
        """Stop the remaining processes. Return those found so far. Cancelling kills them immediately."""
        self.tree.members()  # found before the shell exits, because its adopted orphans couldn't be found afterwards
        self._channel.release()
        try:
            stopped = await super().stop(grace_seconds)
        finally:
            self._channel.close()
        return StopResult((*self._ended, *stopped.ended), stopped.left)

    def detach(self) -> None:
        """Leave the command running. This object no longer stops it, and another process must read its output."""
        self._channel.close()
        super().detach()

    @property
    def state(self) -> ShellState | None:
        """The shell state for the session's next command, or None if the shell reported none, as after `exec`."""
        return self._channel.state


def start_shell(
    launcher: Launcher,
    command_text: str,
    workspace: Path,
    state: ShellState,
    receive: Callable[[bytes], None],
    stdin: int = subprocess.DEVNULL,
) -> ShellCommand:
    """Start a shell with this command. `receive` gets its output; `stdin` is the descriptor of its standard input.

    Raises:
        OSError, ValueError: The operating system can't start it, or the required sandbox isn't available.
    """
    parent_end, child_end = create_channel()
    with pass_to_child(parent_end, child_end):
        environment = {**state.environment, SCRIPT_NAME: _wrapper_script(child_end)}
        launch = launcher.prepare(_shell_arguments(command_text), workspace, state.folder, environment)
        launch = msgspec.structs.replace(launch, stdin=stdin, inherited_descriptors=(child_end,))
        return ShellCommand(launch, receive, parent_end)


class _ControlChannel:
    """The control channel of a shell. The shell reports its state, then waits for a byte before it exits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._received = bytearray()
        self.is_waiting = asyncio.Event()
        self._reader = PipeReader(descriptor, self._receive)

    @property
    def state(self) -> ShellState | None:
        report, end, _ = self._received.partition(STATE_END)
        return parse_state(bytes(report)) if end else None

    def release(self) -> None:
        with contextlib.suppress(OSError):  # the shell has exited already
            os.write(self._descriptor, b"\n")

    def close(self) -> None:
        self._reader.close()

    def _receive(self, chunk: bytes) -> None:
        self._received += chunk
        # Each entry of the state ends with a NUL, the state with another. A third NUL says that the shell waits.
        if self._received.endswith(STATE_END + b"\0"):
            self.is_waiting.set()


def _shell_arguments(command_text: str) -> list[str]:
    if bash := shutil.which("bash"):
        pieces = [command_text[at : at + PIECE_CHARACTERS] for at in range(0, len(command_text), PIECE_CHARACTERS)]
        return [bash, "-c", f'eval "${SCRIPT_NAME}"', "bash", *pieces]
    if sh := shutil.which("sh"):
        return [sh, "-c", command_text]  # without bash no state carries over
    raise FileNotFoundError("neither bash nor sh is on the PATH")


def _wrapper_script(descriptor: int) -> str:
    # In one line, so that line numbers in the command's error messages start at 1.
    return SCRIPT.replace("\n", " ").replace("FD", str(descriptor)).replace("ENV", shutil.which("env") or "env")
