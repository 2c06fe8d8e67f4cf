"""What a server offers and how it stands, kept on disk from run to run; and the names that models see."""

import contextlib
import hashlib
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hark.disk.private_files import replace_private
from hark.mcp.settings import ServerSettings

SEPARATOR = "__"
NAME_CHARACTERS = 64
_HASH_CHARACTERS = 8
_OTHER_SIGNS = re.compile(r"[^a-zA-Z0-9_-]")


class RemoteTool(Struct, frozen=True, omit_defaults=True):
    """A tool as its server tells it."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_changing: bool = True


class ServerOffer(Struct, frozen=True, omit_defaults=True):
    """All that a server offers."""

    tools: tuple[RemoteTool, ...] = ()
    has_resources: bool = False
    has_prompts: bool = False


class ServerState(StrEnum):
    """How a server stands.

    IDLE: not started, as nobody needs it yet. WAITING: it ended or failed, and is tried again soon. LOGIN: a person has
    to log in. PARKED: given up, until a call tries again.
    """

    DISABLED = "disabled"
    IDLE = "idle"
    CONNECTING = "connecting"
    LOGIN = "login"
    CONNECTED = "connected"
    WAITING = "waiting"
    PARKED = "parked"


class ServerStatus(Struct, frozen=True):
    """What a person is told of a server."""

    name: str
    state: ServerState
    tools: tuple[str, ...] = ()
    pid: int | None = None
    restarts: int = 0
    last_error: str = ""


class _Kept(msgspec.Struct, frozen=True):
    fingerprint: str
    offer: ServerOffer | None = None  # None: it kept everybody waiting in vain


class OfferCache:
    """What one server offered with these very settings. What can't be read or written is as if it was never there."""

    def __init__(self, file: Path, settings: ServerSettings) -> None:
        self._file = file
        self._fingerprint = settings.fingerprint

    def load(self) -> ServerOffer | None:
        """Return what it offered."""
        kept = self._kept()
        return kept.offer if kept else None

    def was_late(self) -> bool:
        """Tell whether it kept everybody waiting in vain the last time."""
        kept = self._kept()
        return kept is not None and kept.offer is None

    def _kept(self) -> _Kept | None:
        try:
            kept = msgspec.json.decode(self._file.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return kept if kept.fingerprint == self._fingerprint else None

    def save(self, offer: ServerOffer | None) -> None:
        """Keep what the server offers; None when it was waited for in vain."""
        kept = msgspec.json.encode(_Kept(self._fingerprint, offer))
        with contextlib.suppress(OSError):
            replace_private(self._file, kept, is_durable=False)


class Names:
    """Names that were given out. The same tools in the same order always get the same names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def give(self, server: str, tool: str) -> str:
        """Return SERVER__TOOL, changed where it must be."""
        plain = plain_name(server, tool)
        name = plain if plain not in self._taken else _hashed(plain, server, tool)
        self._taken.add(name)
        return name


def plain_name(server: str, tool: str) -> str:
    """Return the name of a tool that clashes with no other."""
    whole = f"{server}{SEPARATOR}{tool}"
    name = _OTHER_SIGNS.sub("_", whole)
    return name if len(name) <= NAME_CHARACTERS else _hashed(name, server, tool)


def _hashed(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: NAME_CHARACTERS - _HASH_CHARACTERS - 1]}_{digest}"
