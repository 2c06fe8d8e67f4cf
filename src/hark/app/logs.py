"""Logging as text or JSON, with known secrets redacted, to a file in the home and, on request, to stderr."""

import json
import logging
import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

from msgspec import Struct

from hark.disk.private_files import create_private_folder, open_private

FILE_BYTES = 2_000_000
BACKUP_FILES = 3
MIN_SECRET_CHARACTERS = 6  # a shorter secret would match ordinary text
REDACTED = "(secret)"
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[logs]`: the format of log lines, and the lowest level that is written."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class SecretMask:
    """Redacts known secrets in text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first, since a secret may contain a shorter one.
        self._secrets = sorted(
            {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}, key=len, reverse=True
        )

    def redact(self, text: str) -> str:
        """Return the text with every known secret replaced."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text


class TextLogFormatter(logging.Formatter):
    """Formats log records as text, without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_TEXT)
        self.redact = SecretMask(secrets).redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line without secrets."""
        return self.redact(super().format(record))


class JsonLogFormatter(TextLogFormatter):
    """Formats log records as JSON objects, one per line, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one JSON object."""
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.redact(record.getMessage()),
        }
        if record.exc_info:
            line["error"] = self.redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class PrivateLogFile(RotatingFileHandler):
    """A rotating log file that only its owner can read."""

    def _open(self) -> TextIOWrapper:
        return os.fdopen(open_private(Path(self.baseFilename), os.O_WRONLY | os.O_APPEND), "a", encoding=self.encoding)


def start_logs(home: Path, *, is_verbose: bool) -> None:
    """Log to `logs/hark.log` in the home if it is writable, and to stderr if `is_verbose`."""
    logger = logging.getLogger("hark")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    formatter = logging.Formatter(_TEXT)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if is_verbose else []
    try:
        directory = home / "logs"
        create_private_folder(directory)
        handlers.append(
            PrivateLogFile(directory / "hark.log", maxBytes=FILE_BYTES, backupCount=BACKUP_FILES, delay=True)
        )
    except OSError:
        pass  # the code that needs the home reports the problem
    for handler in handlers:
        handler.setFormatter(formatter)
        logger.addHandler(handler)


def apply_log_settings(settings: LogSettings, secrets: Iterable[str] = ()) -> None:
    """Apply the log format and level to Hark's log, and send warnings from libraries to it."""
    formatter = (JsonLogFormatter if settings.format == "json" else TextLogFormatter)(secrets)
    hark_logger = logging.getLogger("hark")
    hark_logger.setLevel(settings.level.upper())
    for handler in hark_logger.handlers:
        handler.setFormatter(formatter)
    _redirect_logger("uvicorn", hark_logger.handlers)
    _redirect_logger("", hark_logger.handlers)


def redact_in_logs(secrets: Iterable[str]) -> None:
    """Redact these secrets in the logs, unless `apply_log_settings` has already done so."""
    for handler in logging.getLogger("hark").handlers:
        if not isinstance(handler.formatter, TextLogFormatter):
            handler.setFormatter(TextLogFormatter(secrets))


def _redirect_logger(name: str, handlers: Iterable[logging.Handler]) -> None:
    """Send a library's warnings to our handlers. On stderr, their secrets would not be redacted."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    for handler in handlers:
        if handler not in logger.handlers:
            logger.addHandler(handler)
