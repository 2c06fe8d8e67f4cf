"""What carries over from one shell call of a session to the next: its folder and its exported variables."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hark.processes.cookies import COOKIE_NAME

# Each call has a cookie of its own, and bash makes or obeys these before a command has its say: they are always those
# of the beginning.
_OF_ONE_SHELL = frozenset({COOKIE_NAME, "_", "SHLVL", "PWD", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"})
# Exported functions; and the variables of the script around the command, when it exports all.
_NOT_CARRIED = ("BASH_FUNC_", "__hark_")


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
