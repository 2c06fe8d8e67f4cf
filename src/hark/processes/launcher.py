"""Starts commands: whose they are, what they find in their environment, and the walls around them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hark.processes.command import Launch
from hark.processes.cookies import Owner, with_cookie
from hark.processes.output_files import Outputs
from hark.processes.sandbox import Sandbox, Walls

# Whatever would wait for a person at a terminal fails at once instead, and says so.
NOBODY_AT_THE_KEYBOARD = {
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GIT_ASKPASS": "/bin/false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "SSH_ASKPASS": "/bin/false",
    "SUDO_ASKPASS": "/bin/false",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
    # Vim would wait for keys on its standard error; commands that were given with -c are done by then.
    "VIMINIT": "autocmd VimEnter * if !has('ttyin') | cquit | endif",
    "VISUAL": "false",
}


class Launcher:
    """Starts commands as `owner`. What they print goes whole into files below `home`, which the sandbox hides."""

    def __init__(
        self,
        owner: Owner,
        home: Path | None = None,
        sandbox: Sandbox | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Without a home no output is kept whole; without an environment it is that of this process."""
        self.owner = owner
        self.outputs = Outputs(home / "outputs" if home else None)
        hidden = (home,) if home else ()
        self._walls = Walls(sandbox or Sandbox(), hidden, (self.outputs.folder,) if self.outputs.folder else ())
        self._environment = environment

    @property
    def environment(self) -> dict[str, str]:
        """What a command finds in its environment, unless it is told otherwise."""
        return {**(os.environ if self._environment is None else self._environment), **NOBODY_AT_THE_KEYBOARD}

    def launch(self, words: Sequence[str], workspace: Path, folder: Path, environment: Mapping[str, str]) -> Launch:
        """Return what to start: behind walls if there are any, with a cookie of its own.

        Raises:
            SandboxMissing: Walls are required and there are none.
        """
        cookie = self.owner.new_cookie()
        walled = self._walls.around(words, workspace)
        return Launch(walled, folder, with_cookie(environment, cookie), cookie, is_walled=len(walled) > len(words))
