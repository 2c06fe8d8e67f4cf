"""Where a server lives: its name, its settings, its files."""

from dataclasses import dataclass
from pathlib import Path

from hark.mcp.logs import ServerLog
from hark.mcp.settings import ServerSettings
from hark.processes.piped import Spawn


@dataclass(frozen=True, slots=True)
class ServerPaths:
    """Where all servers live: what they offered, what they print, the tokens for them, and what they work on."""

    cache: Path
    logs: Path
    tokens: Path
    workspace: Path

    @classmethod
    def in_home(cls, home: Path, workspace: Path) -> "ServerPaths":
        """Return the usual places."""
        return cls(home / "cache" / "mcp", home / "logs", home / "mcp", workspace)


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where one server lives."""

    name: str
    settings: ServerSettings
    places: ServerPaths
    log: ServerLog
    spawn: Spawn

    @property
    def roots(self) -> list[Path]:
        """The directories that it may work in: the workspace, and those that its own arguments name.

        Some servers take the roots in place of their arguments: what the person opened to them must stay open.
        """
        named = [Path(word).expanduser() for word in self.settings.args if word.startswith(("/", "~"))]
        return [self.places.workspace.resolve(), *(path.resolve() for path in named if path.is_dir())]

    @property
    def token_file(self) -> Path:
        """Where its tokens are."""
        return self.places.tokens / f"{self.name}.oauth.json"
