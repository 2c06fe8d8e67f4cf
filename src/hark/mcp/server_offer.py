"""Server offers (tools, resources and prompts), their cache on disk, server states, and tool names for models."""

import contextlib
import hashlib
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hark.disk.private_files import replace_file
from hark.mcp.settings import ServerSettings

SEPARATOR = "__"
MAX_NAME_CHARACTERS = 64
_HASH_CHARACTERS = 8
_INVALID_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


class RemoteTool(Struct, frozen=True, omit_defaults=True):
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_changing: bool = True


class ServerOffer(Struct, frozen=True, omit_defaults=True):
    """A server's offer: its tools, and whether it has resources and prompts."""

    tools: tuple[RemoteTool, ...] = ()
    has_resources: bool = False
    has_prompts: bool = False


class ServerState(StrEnum):
    """The state of a server.

    IDLE: not started because it is not needed yet. WAITING: it ended or failed, and is retried soon. LOGIN: the user
    has to log in. FAILED: it failed repeatedly, and is retried about once a minute, by a call or by a new session.
    """

    DISABLED = "disabled"
    IDLE = "idle"
    CONNECTING = "connecting"
    LOGIN = "login"
    CONNECTED = "connected"
    WAITING = "waiting"
    FAILED = "failed"


class ServerStatus(Struct, frozen=True):
    """The status of a server, as shown to the user. `retry_seconds`: the time until the next automatic attempt."""

    name: str
    state: ServerState
    tools: tuple[str, ...] = ()
    pid: int | None = None
    restarts: int = 0
    last_error: str = ""
    retry_seconds: float | None = None

    @property
    def text(self) -> str:
        """The status in one line."""
        parts = [f"{self.name}: {self.state}, {len(self.tools)} tools"]
        if self.last_error:
            parts.append(self.last_error if self.state is not ServerState.CONNECTED else f"earlier: {self.last_error}")
        if self.retry_seconds is not None:
            parts.append(f"next attempt in {self.retry_seconds:.0f} s")
        return "; ".join(parts)


class _CachedOffer(msgspec.Struct, frozen=True, omit_defaults=True):
    fingerprint: str
    offer: ServerOffer | None = None
    last_error: str = ""  # of the last start, if it failed


class OfferCache:
    """The cached offer and last error of one server, valid for one version of its settings. Ignores file errors."""

    def __init__(self, file: Path, settings: ServerSettings) -> None:
        self._file = file
        self._fingerprint = settings.fingerprint

    def load(self) -> tuple[ServerOffer | None, str]:
        """Return the cached offer, or None if there is none for these settings, and the error of the last start."""
        try:
            cached = msgspec.json.decode(self._file.read_bytes(), type=_CachedOffer)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None, ""
        return (cached.offer, cached.last_error) if cached.fingerprint == self._fingerprint else (None, "")

    def save(self, offer: ServerOffer | None, last_error: str = "") -> None:
        """Save the server's offer, if it is known, and the error of the last start."""
        if (offer, last_error) != self.load():
            encoded = msgspec.json.encode(_CachedOffer(self._fingerprint, offer, last_error))
            with contextlib.suppress(OSError):
                replace_file(self._file, encoded, is_durable=False)


class ToolNames:
    """Allocates unique tool names. The same tools in the same order always get the same names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def allocate(self, server: str, tool: str) -> str:
        """Return SERVER__TOOL, with a hash appended if that name is already used."""
        plain = make_tool_name(server, tool)
        name = plain if plain not in self._taken else _append_hash(plain, server, tool)
        self._taken.add(name)
        return name


def make_tool_name(server: str, tool: str) -> str:
    """Return SERVER__TOOL with invalid characters replaced, shortened with a hash if it is too long."""
    full_name = f"{server}{SEPARATOR}{tool}"
    name = _INVALID_CHARACTERS.sub("_", full_name)
    return name if len(name) <= MAX_NAME_CHARACTERS else _append_hash(name, server, tool)


def _append_hash(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: MAX_NAME_CHARACTERS - _HASH_CHARACTERS - 1]}_{digest}"
