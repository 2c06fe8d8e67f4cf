"""What a server has to offer, and how it stands, as data."""

from enum import StrEnum
from typing import Any

from msgspec import Struct


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
