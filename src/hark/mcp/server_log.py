"""What a server prints beside its messages, in a file that can't grow without end."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from hark.protocol.redaction import redacted

FILE_BYTES = 1_000_000


class ServerLog:
    """A file and the one before it. A disk that can't be written to keeps nothing, and harms nobody."""

    def __init__(self, file: Path, secrets: Sequence[str] = ()) -> None:
        """What of the server's settings is secret is written nowhere."""
        self.file = file
        self._secrets = secrets

    def cleaned(self, text: str) -> str:
        """Return a text without the secrets."""
        return redacted(text, self._secrets)

    def write(self, piece: bytes) -> bytes:
        """Add a piece; return it as it was written."""
        piece = self.cleaned(piece.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab") as out:
                out.write(piece[-FILE_BYTES:])
                size = out.tell()
            if size > FILE_BYTES:
                self.file.replace(self.file.with_name(f"{self.file.name}.1"))
        return piece

    def note(self, text: str) -> None:
        """Add a line of our own."""
        self.write(f"[hark] {text}\n".encode(errors="replace"))
