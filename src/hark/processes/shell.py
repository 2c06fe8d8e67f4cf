"""A shell command, and the folder and variables that it leaves to the next one."""

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
from hark.processes.pipe import PipeReader, inherited
from hark.processes.process_table import Seen
from hark.processes.start import Command, Launch, Launcher, first_of, high_pair
from hark.processes.tree import GRACE_SECONDS, StopResult

# Each call has a cookie of its own, and bash makes or obeys these before a command has its say: they are always those
# of the beginning.
_OF_ONE_SHELL = frozenset({COOKIE_NAME, "_", "SHLVL", "PWD", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"})
# Exported functions; and the variables of the script around the command, when it exports all.
_NOT_CARRIED = ("BASH_FUNC_", "__hark_")
END = b"\0\0"
# Where the shell finds its script: among its words it would hide the command from whoever lists processes.
SCRIPT_NAME = "HARK_SHELL"

# Runs its argument as `bash -c` would. At its exit, whatever the reason, it tells its state; a trap of the command's
# own comes then; and it waits for a line, since as long as it lives all that lost its parent is its child, and found.
# When it is being stopped it may go at once, and tells nothing. A trap must see the exit code, under `set -e` too: only
# a condition may fail there. In its POSIX mode bash knows no function of the name of `trap`.
SCRIPT = r"""
unset HARK_SHELL; __hark_posix=; case :$SHELLOPTS: in *:posix:*) __hark_posix=1; set +o posix;; esac;
__hark_tell() { { set +x; } 2>/dev/null;
  if [ "$BASH_SUBSHELL" = 0 ] && ! builtin read -t 0 -u FD; then
    { builtin pwd; builtin printf '\0'; ENV -0; builtin printf '\0'; } >&FD;
  fi; return "$1"; };
__hark_wait() { exec >&- 2>&-; builtin printf '\0' >&FD; builtin read -r -u FD; };
__hark_exit='if { __hark_tell $?; } 2>/dev/null; then eval "$__hark_trap"; else eval "$__hark_trap"; fi;
  __hark_wait';
__hark_trap=;
trap() { builtin trap "$@" || return;
  if [ "$BASH_SUBSHELL" = 0 ]; then
    eval "set -- $(builtin trap -p EXIT)";
    if [ "${3-}" != "$__hark_exit" ]; then __hark_trap=${3-}; builtin trap "$__hark_exit" EXIT; fi;
  fi; };
builtin trap "$__hark_exit" EXIT; if [ "$__hark_posix" ]; then set -o posix; fi;
__hark_command=$1; shift; eval "$__hark_command"
"""


class ShellState(Struct, frozen=True):
    """Where a shell was when it ended, and what it had exported."""

    folder: Path
    environment: Mapping[str, str]


class ShellStates:
    """The state of each session's shell, in memory alone: it may hold secrets."""

    def __init__(self) -> None:
        self._states: dict[str, ShellState] = {}

    def of(self, session: str, workspace: Path, environment: Mapping[str, str]) -> tuple[ShellState, str]:
        """Return a session's state, which begins in the workspace with this environment, and what to say of it.

        When its folder is gone it is back in the workspace.
        """
        state = self._states.get(session)
        if state is None:
            return ShellState(workspace, environment), ""
        first = {name: environment[name] for name in _OF_ONE_SHELL if name in environment}
        kept = {**state.environment, **first}
        if state.folder.is_dir():
            return ShellState(state.folder, kept), ""
        return ShellState(workspace, kept), f"the folder {state.folder} is gone: this ran in {workspace}"

    def folder(self, session: str) -> Path | None:
        """Return the folder in which a session's next shell would begin; None for the workspace."""
        state = self._states.get(session)
        return state.folder if state and state.folder.is_dir() else None

    def keep(self, session: str, state: ShellState) -> None:
        """The session's next shell begins with this."""
        self._states[session] = state

    def forget(self, session: str) -> None:
        """The session is over, or begins anew."""
        self._states.pop(session, None)


def read_state(told: bytes) -> ShellState | None:
    """Return the state that a shell told: its folder, then its variables, each with a NUL behind it."""
    folder, *entries = told.split(b"\0")
    if not folder:
        return None
    pairs = (entry.decode(errors="surrogateescape").partition("=") for entry in entries if b"=" in entry)
    environment = {
        name: value for name, _, value in pairs if name not in _OF_ONE_SHELL and not name.startswith(_NOT_CARRIED)
    }
    return ShellState(Path(folder.removesuffix(b"\n").decode(errors="surrogateescape")), environment)


class ShellCommand(Command):
    """A running shell command. Whoever made it calls `stop`, however it ends."""

    def __init__(self, launch: Launch, receive: Callable[[bytes], None], line: int) -> None:
        """Start it; `line` is the descriptor of our end of its line. The rest is as in Command."""
        super().__init__(launch, receive)
        self._line = _Line(line)
        # Behind walls the shell is not the first process, and what it leaves is found through the wall's own.
        self._is_walled = launch.is_walled
        self._ended: tuple[Seen, ...] = ()

    async def finished(self) -> None:
        """Return when it has ended by itself, its output is read, and what it left behind is ended. Safe to cancel."""
        await first_of(self.tree.exited, self._line.waits.wait)
        if self._line.waits.is_set():
            await self.output.ended()
            if not self._is_walled and self.tree.rest():
                self._ended = (await self.tree.stop_rest()).ended
            self._line.release()
        await super().finished()

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> StopResult:
        """End all that still runs of it; return all that it had left behind. Cancelling it kills at once."""
        self.tree.members()  # seen before the shell may go: what it adopted would be nobody's then
        self._line.release()
        try:
            stopped = await super().stop(grace_seconds)
        finally:
            self._line.close()
        return StopResult((*self._ended, *stopped.ended), stopped.left)

    def let_go(self) -> None:
        """Leave it running, never to be stopped from here; another must read what it prints."""
        self._line.close()
        super().let_go()

    @property
    def state(self) -> ShellState | None:
        """What carries over; None when it told nothing, as when it became another program."""
        return self._line.state


def start_shell(
    launcher: Launcher,
    text: str,
    workspace: Path,
    state: ShellState,
    receive: Callable[[bytes], None],
    keyboard: int = subprocess.DEVNULL,
) -> ShellCommand:
    """Start a shell with this text; `receive` gets what it prints, `keyboard` is what it reads.

    Raises:
        OSError, ValueError: The system can't start it, or walls are required and there are none.
    """
    ours, theirs = high_pair()
    with inherited(ours, theirs):
        environment = {**state.environment, SCRIPT_NAME: _script(theirs)}
        launch = launcher.launch(_words(text), workspace, state.folder, environment)
        launch = msgspec.structs.replace(launch, keyboard=keyboard, inherited=(theirs,))
        return ShellCommand(launch, receive, ours)


class _Line:
    """The line to a shell: it tells its state, then that it waits; the first byte from here lets it go."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._told = bytearray()
        self.waits = asyncio.Event()
        self._reader = PipeReader(descriptor, self._receive)

    @property
    def state(self) -> ShellState | None:
        whole, end, _ = self._told.partition(END)
        return read_state(bytes(whole)) if end else None

    def release(self) -> None:
        with contextlib.suppress(OSError):  # it is gone already
            os.write(self._descriptor, b"\n")

    def close(self) -> None:
        self._reader.close()

    def _receive(self, piece: bytes) -> None:
        self._told += piece
        # The state has a NUL behind each entry and one more at its end; the wait is the third.
        if self._told.endswith(END + b"\0"):
            self.waits.set()


def _words(text: str) -> list[str]:
    if bash := shutil.which("bash"):
        return [bash, "-c", f'eval "${SCRIPT_NAME}"', "bash", text]
    if sh := shutil.which("sh"):
        return [sh, "-c", text]  # without bash nothing carries over
    raise FileNotFoundError("neither bash nor sh is on the PATH")


def _script(descriptor: int) -> str:
    # As one line, so that the lines of the command are counted from 1 in its messages.
    return SCRIPT.replace("\n", " ").replace("FD", str(descriptor)).replace("ENV", shutil.which("env") or "env")
