"""Walls around commands: bubblewrap, where the system has it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

TRY_SECONDS = 2.0
# Keys, and sockets of services that would do anything for whoever reaches them.
SECRETS = ("~/.ssh", "~/.gnupg", "~/.aws", "~/.kube", "~/.netrc", "/run/user", "/run/docker.sock")


class Sandbox(Struct, frozen=True):
    """Settings: whether commands run behind walls, and what they may do there.

    `auto` uses bubblewrap where it works and does without it elsewhere, `required` runs nothing without it. Inside,
    everything can be read but secrets, and only the workspace, a private /tmp and the `writable` paths be written.
    """

    mode: Literal["off", "auto", "required"] = "off"
    network: bool = True
    writable: tuple[str, ...] = ()


class SandboxMissing(OSError):
    """The walls are required and can't be put up."""


class Walls:
    """Puts commands behind walls, as the settings say. `hidden` is not seen from inside, `shown` is in spite of it."""

    def __init__(self, sandbox: Sandbox, hidden: Sequence[Path] = (), shown: Sequence[Path] = ()) -> None:
        self._sandbox = sandbox
        self._hidden = (*hidden, *(Path(path).expanduser() for path in SECRETS))
        self._shown = tuple(shown)
        self._program: str | None = None
        self._problem = ""

    def around(self, words: Sequence[str], workspace: Path) -> list[str]:
        """Return the words that run these words behind the walls, or as they are if that is what the settings say.

        Raises:
            SandboxMissing: The settings require walls and this machine has none.
        """
        if self._sandbox.mode == "off":
            return list(words)
        if not self._program and not self._problem:
            self._try()
        if not self._program:
            if self._sandbox.mode == "required":
                raise SandboxMissing(f"the settings require a sandbox, and {self._problem}")
            return list(words)
        return [self._program, *self._walls(), *self._mounts(workspace), "--", *words]

    def _walls(self) -> list[str]:
        walls = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-ipc"]
        return walls if self._sandbox.network else [*walls, "--unshare-net"]

    def _mounts(self, workspace: Path) -> Iterator[str]:
        mounts = {Path("/tmp"): "--tmpfs"}  # noqa: S108 - a private one
        mounts.update((path.resolve(), "hide") for path in self._hidden)
        # The interpreter and what it imports, which may lie in a /tmp that is hidden otherwise.
        programs = (Path(place).resolve() for place in {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])})
        mounts.update((path, "--ro-bind") for path in programs if path != Path("/"))
        mounts.update((path.resolve(), "--ro-bind") for path in self._shown)
        mounts.update((Path(path).expanduser().resolve(), "--bind") for path in self._sandbox.writable)
        mounts[workspace.resolve()] = "--bind"
        # What lies deeper comes later: a workspace inside a hidden folder is there, a secret inside a workspace is not.
        for path, how in sorted(mounts.items(), key=lambda one: len(one[0].parts)):
            match how:
                case "--tmpfs":
                    yield from (how, str(path))
                case "hide" if path.is_dir():
                    yield from ("--tmpfs", str(path))
                case "hide" if path.exists():
                    yield from ("--ro-bind", "/dev/null", str(path))
                case "--bind" | "--ro-bind" if path.exists():
                    yield from (how, str(path), str(path))
                case _:
                    pass

    def _try(self) -> None:
        program = shutil.which("bwrap")
        if program is None:
            self._problem = "bubblewrap (bwrap) is not installed: install it, or set sandbox.mode to auto"
            return
        words = [program, *self._walls(), "true"]
        try:
            tried = subprocess.run(  # noqa: S603 - a fixed program; once, and bounded
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRY_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._problem = f"bubblewrap does not work here: {error}"
            return
        if tried.returncode == 0:
            self._program = program
        else:
            why = tried.stderr.decode(errors="replace").strip() or f"exit code {tried.returncode}"
            self._problem = f"bubblewrap does not work here: {why}"
