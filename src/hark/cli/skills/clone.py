"""Clones git repositories with a git process that can be killed and never prompts."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import anyio

from hark.app.settings.secrets import hide_secrets
from hark.processes.cookies import ProcessOwner, with_cookie
from hark.processes.launcher import Launch, RunningCommand

MAX_OUTPUT_BYTES = 4_000

_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
_NON_INTERACTIVE = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # other protocols run commands
    "GIT_ASKPASS": "/bin/false",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS": "/bin/false",
}
_ERROR_PREFIX = re.compile(r"^(fatal|error|remote|ssh): ")


class SourceError(Exception):
    """A source of skills could not be read. The message says why."""


class RepositoryCloner:
    """Clones repositories into a folder, each with a git process that belongs to `owner`."""

    def __init__(self, folder: Path, owner: ProcessOwner) -> None:
        self._folder = folder
        self._owner = owner
        self._count = 0

    async def clone(self, url: str) -> Path:
        """Clone the newest commit of a repository and return its folder. Cancelling kills git.

        Raises:
            SourceError: git is missing, or the clone failed.
        """
        self._count += 1
        target = self._folder / str(self._count)
        arguments = ["git", *_OPTIONS, "clone", "--quiet", "--depth", "1", "--no-tags", "--", url, str(target)]
        output = bytearray()
        cookie = self._owner.new_cookie()
        launch = Launch(arguments, self._folder, with_cookie(_git_environment(os.environ), cookie), cookie)
        try:
            command = RunningCommand(launch, lambda piece: output.extend(piece[: MAX_OUTPUT_BYTES - len(output)]))
        except (OSError, ValueError) as error:
            raise SourceError(f"git could not be started: {error}") from error
        try:
            await command.wait_until_finished()
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the stop itself
                await command.stop()
        if command.exit_code != 0:
            raise SourceError(f"git clone failed: {_error_reason(output.decode(errors='replace'))}")
        return target


def _git_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git, without variables that point to the repository in which Hark runs."""
    filtered = {
        name: value for name, value in inherited.items() if not name.startswith("GIT_") or name == "GIT_SSH_COMMAND"
    }
    return {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **filtered, **_NON_INTERACTIVE}


def _error_reason(output: str) -> str:
    lines = [_ERROR_PREFIX.sub("", line.strip()) for line in output.splitlines() if line.strip()]
    return str(hide_secrets(" ".join(lines)[:300])) or "no reason given"
