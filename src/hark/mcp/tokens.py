"""The file with a server's tokens: its owner alone may read it."""

import os
from pathlib import Path
from typing import Any

import msgspec


class StoredLogin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a login: tokens, when they end, who we are to the server, and where it renews them."""

    tokens: dict[str, Any] | None = None
    ends_at: float | None = None
    client: dict[str, Any] | None = None
    port: int = 0
    context: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class TokenFile:
    """Reads and writes it, whole or not at all. A broken file is no login."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> StoredLogin:
        """Return what is kept."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=StoredLogin)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return StoredLogin()

    def update(self, **changes: object) -> None:
        """Keep these as well.

        Raises:
            OSError: The disk can't be written to.
        """
        kept = msgspec.structs.replace(self.load(), **changes)
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(msgspec.json.encode(kept))
        draft.replace(self._file)
