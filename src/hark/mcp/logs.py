"""What a server prints and what the SDK logs, in files that can't grow without end."""

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

from hark.disk.private_files import append_private
from hark.text.redaction import redacted

FILE_BYTES = 1_000_000
_LOGGERS = ("mcp", "client", "httpx2", "httpcore2")
_OURS = logging.getLogger("hark.mcp.sdk")


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
            if append_private(self.file, piece[-FILE_BYTES:], is_durable=False) > FILE_BYTES:
                self.file.replace(self.file.with_name(f"{self.file.name}.1"))
        return piece

    def note(self, text: str) -> None:
        """Add a line of our own."""
        self.write(f"[hark] {text}\n".encode(errors="replace"))


class _Passing(logging.Handler):
    """Passes records on, all of them as mere information: what matters of an error is told by our own failures."""

    def emit(self, record: logging.LogRecord) -> None:
        _OURS.info("%s: %s", record.name, record.getMessage())


def quiet_sdk() -> None:
    """Have what the SDK logs come to us; more than once is once."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, _Passing) for handler in logger.handlers):
            logger.addHandler(_Passing(logging.WARNING))
            logger.propagate = False
