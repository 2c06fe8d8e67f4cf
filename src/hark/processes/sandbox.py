"""Runs commands in a bubblewrap sandbox, if the system has bubblewrap."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

PROBE_SECONDS = 2.0
# Keys, and sockets of services that give any client full control.
SECRETS = ("~/.ssh", "~/.gnupg", "~/.aws", "~/.kube", "~/.netrc", "/run/user", "/run/docker.sock")


class SandboxSettings(Struct, frozen=True):
    """Whether commands run in a sandbox, and their access rights inside it.

    `auto` uses bubblewrap if it works, and no sandbox otherwise. `required` runs nothing without it. Commands can
    read everything except secrets. They can write to the workspace, a private /tmp and the `writable` paths.
    """

    mode: Literal["off", "auto", "required"] = "off"
    network: bool = True
    writable: tuple[str, ...] = ()


class SandboxUnavailable(OSError):
    """The settings require a sandbox, but this machine has none that works."""


class CommandSandbox:
    """Wraps commands in the sandbox unless it is off. `hidden` paths are inaccessible, `visible` paths read-only."""

    def __init__(self, settings: SandboxSettings, hidden: Sequence[Path] = (), visible: Sequence[Path] = ()) -> None:
        self._settings = settings
        self._hidden = (*hidden, *(Path(path).expanduser() for path in SECRETS))
        self._visible = tuple(visible)
        self._program: str | None = None
        self._problem = ""

    def wrap(self, argv: Sequence[str], workspace: Path) -> list[str]:
        """Return the arguments that run a command in the sandbox, or the command itself if there is no sandbox.

        Raises:
            SandboxUnavailable: The settings require a sandbox, but this machine has none.
        """
        if self._settings.mode == "off":
            return list(argv)
        if not self._program and not self._problem:
            self._probe_bubblewrap()
        if not self._program:
            if self._settings.mode == "required":
                raise SandboxUnavailable(f"the settings require a sandbox, and {self._problem}")
            return list(argv)
        return [self._program, *self._isolation_options(), *self._mount_options(workspace), "--", *argv]

    def _isolation_options(self) -> list[str]:
        options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-ipc"]
        return options if self._settings.network else [*options, "--unshare-net"]

    def _mount_options(self, workspace: Path) -> Iterator[str]:
        mounts = {Path("/tmp"): "--tmpfs"}  # noqa: S108 - a private /tmp
        mounts.update((path.resolve(), "hide") for path in self._hidden)
        # The interpreter and its libraries, which may be in a /tmp that is hidden otherwise.
        programs = (Path(prefix).resolve() for prefix in {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])})
        mounts.update((path, "--ro-bind") for path in programs if path != Path("/"))
        mounts.update((path.resolve(), "--ro-bind") for path in self._visible)
        mounts.update((Path(path).expanduser().resolve(), "--bind") for path in self._settings.writable)
        mounts[workspace.resolve()] = "--bind"
        # Deeper paths come later, so a workspace in a hidden folder is visible, and a secret in a workspace is
        # hidden.
        for path, how in sorted(mounts.items(), key=lambda mount: len(mount[0].parts)):
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

    def _probe_bubblewrap(self) -> None:
        program = shutil.which("bwrap")
        if program is None:
            self._problem = "bubblewrap (bwrap) is not installed: install it, or set sandbox.mode to auto"
            return
        argv = [program, *self._isolation_options(), "true"]
        try:
            probe = subprocess.run(  # noqa: S603 - a fixed program, run once with a timeout
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._problem = f"bubblewrap does not work here: {error}"
            return
        if probe.returncode == 0:
            self._program = program
        else:
            why = probe.stderr.decode(errors="replace").strip() or f"exit code {probe.returncode}"
            self._problem = f"bubblewrap does not work here: {why}"
