"""The name, settings, files and directories of a server."""

from dataclasses import dataclass
from pathlib import Path

from hark.mcp.logs import ServerLog
from hark.mcp.settings import ServerSettings
from hark.processes.piped_process import Spawn


@dataclass(frozen=True, slots=True)
class ServerPaths:
    """The directories that all servers use: cached offers, logs, login tokens, and the workspace."""

    cache: Path
    logs: Path
    tokens: Path
    workspace: Path

    @classmethod
    def in_home(cls, home: Path, workspace: Path) -> "ServerPaths":
        """Return the default paths inside Hark's home."""
        return cls(home / "cache" / "mcp", home / "logs", home / "mcp", workspace)


@dataclass(frozen=True, slots=True)
class ServerContext:
    """Everything needed to start one server: its name, settings, paths and log, and the function that spawns it."""

    name: str
    settings: ServerSettings
    paths: ServerPaths
    log: ServerLog
    spawn: Spawn

    @property
    def roots(self) -> list[Path]:
        """The directories the server may use: the workspace and the directories named in its arguments.

        Some servers use the roots instead of their arguments, so directories that the user listed there must be
        included.
        """
        listed = [Path(argument).expanduser() for argument in self.settings.args if argument.startswith(("/", "~"))]
        return [self.paths.workspace.resolve(), *(path.resolve() for path in listed if path.is_dir())]

    @property
    def token_file(self) -> Path:
        """The file with the server's OAuth tokens."""
        return self.paths.tokens / f"{self.name}.oauth.json"
