"""A git repository as a folder: cloned by a process that can be killed, with nobody at its keyboard."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import anyio

from hark.app.settings.secrets import without_secrets
from hark.processes.cookies import Owner, with_cookie
from hark.processes.start import Command, Launch

MAX_PRINTED = 4_000

_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
_QUIET = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # the others run commands
    "GIT_ASKPASS": "/bin/false",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS": "/bin/false",
}
_LEADING = re.compile(r"^(fatal|error|remote|ssh): ")


class SourceError(Exception):
    """A source could not be asked; the text says why."""


class Clones:
    """Clones repositories into a folder of its own, each in a process of this owner's."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        self._folder = folder
        self._owner = owner
        self._count = 0

    async def clone(self, url: str) -> Path:
        """Return a folder with the newest state of the repository. Cancelling kills git.

        Raises:
            SourceError: git is missing, or could not get it.
        """
        self._count += 1
        place = self._folder / str(self._count)
        words = ["git", *_OPTIONS, "clone", "--quiet", "--depth", "1", "--no-tags", "--", url, str(place)]
        printed = bytearray()
        cookie = self._owner.new_cookie()
        launch = Launch(words, self._folder, with_cookie(_environment(os.environ), cookie), cookie)
        try:
            command = Command(launch, lambda piece: printed.extend(piece[: MAX_PRINTED - len(printed)]))
        except (OSError, ValueError) as error:
            raise SourceError(f"git could not be started: {error}") from error
        try:
            await command.finished()
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the stop itself
                await command.stop()
        if command.exit_code != 0:
            raise SourceError(f"git could not clone it: {_reason(printed.decode(errors='replace'))}")
        return place


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git, without what ties it to a repository that Hark itself may run in."""
    kept = {
        name: value for name, value in inherited.items() if not name.startswith("GIT_") or name == "GIT_SSH_COMMAND"
    }
    return {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **kept, **_QUIET}


def _reason(printed: str) -> str:
    lines = [_LEADING.sub("", line.strip()) for line in printed.splitlines() if line.strip()]
    return str(without_secrets(" ".join(lines)[:300])) or "it gave no reason"
