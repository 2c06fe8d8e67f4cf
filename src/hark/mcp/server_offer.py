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
    has to log in. PARKED: suspended after repeated failures until a call starts it again.
    """

    DISABLED = "disabled"
    IDLE = "idle"
    CONNECTING = "connecting"
    LOGIN = "login"
    CONNECTED = "connected"
    WAITING = "waiting"
    PARKED = "parked"


class ServerStatus(Struct, frozen=True):
    """The status of a server, as shown to the user."""

    name: str
    state: ServerState
    tools: tuple[str, ...] = ()
    pid: int | None = None
    restarts: int = 0
    last_error: str = ""


class _CachedOffer(msgspec.Struct, frozen=True):
    fingerprint: str
    offer: ServerOffer | None = None  # None: the server listed nothing in time at its last start


class OfferCache:
    """The cached offer of one server, valid for one version of its settings. Read and write errors are ignored."""

    def __init__(self, file: Path, settings: ServerSettings) -> None:
        self._file = file
        self._fingerprint = settings.fingerprint

    def load(self) -> ServerOffer | None:
        """Return the cached offer, or None if no offer is cached for these settings."""
        cached = self._read()
        return cached.offer if cached else None

    def has_timed_out(self) -> bool:
        """Return whether the server failed to list its tools in time at its last start."""
        cached = self._read()
        return cached is not None and cached.offer is None

    def _read(self) -> _CachedOffer | None:
        try:
            cached = msgspec.json.decode(self._file.read_bytes(), type=_CachedOffer)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return cached if cached.fingerprint == self._fingerprint else None

    def save(self, offer: ServerOffer | None) -> None:
        """Save the server's offer, or None if the server did not list its tools in time."""
        encoded = msgspec.json.encode(_CachedOffer(self._fingerprint, offer))
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
