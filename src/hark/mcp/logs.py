"""Logs for the servers' output and for the SDK, in files of limited size."""

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

from hark.disk.private_files import append_log
from hark.text.redaction import redact_secrets

MAX_FILE_BYTES = 1_000_000
_LOGGERS = ("mcp", "client", "httpx2", "httpcore2")
_SDK_LOG = logging.getLogger("hark.mcp.sdk")


class ServerLog:
    """A server's log file, which is rotated when it gets too large. Write errors are ignored."""

    def __init__(self, file: Path, secrets: Sequence[str] = ()) -> None:
        """`secrets` are redacted from everything that is written."""
        self.file = file
        self._secrets = secrets

    def redact(self, text: str) -> str:
        """Return the text with the secrets redacted."""
        return redact_secrets(text, self._secrets)

    def write(self, piece: bytes) -> bytes:
        """Append server output to the log, and return the output with the secrets redacted."""
        piece = self.redact(piece.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        with contextlib.suppress(OSError):
            if append_log(self.file, piece[-MAX_FILE_BYTES:]) > MAX_FILE_BYTES:
                self.file.replace(self.file.with_name(f"{self.file.name}.1"))
        return piece

    def note(self, text: str) -> None:
        """Append a line from Hark itself, marked `[hark]`."""
        self.write(f"[hark] {text}\n".encode(errors="replace"))


class _SdkLogForwarder(logging.Handler):
    """Forwards the SDK's log records at level INFO. Hark reports the important errors as `ServerFailure`."""

    def emit(self, record: logging.LogRecord) -> None:
        _SDK_LOG.info("%s: %s", record.name, record.getMessage())


def redirect_sdk_logs() -> None:
    """Send the SDK's log records to Hark's log. Further calls change nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, _SdkLogForwarder) for handler in logger.handlers):
            logger.addHandler(_SdkLogForwarder(logging.WARNING))
            logger.propagate = False
