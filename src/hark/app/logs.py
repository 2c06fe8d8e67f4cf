"""Logs: to a file in the home, on stderr for who asks; as text or JSON, never with a secret that is known."""

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

from hark.disk.private_files import open_private, private_folder

FILE_BYTES = 2_000_000
FILES = 3
LEAST_SECRET = 6  # a shorter one would be found in every other word
HIDDEN = "(secret)"
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[logs]`: how lines look, and from which level on they are written."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class SecretMask:
    """Takes known secrets out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: a shorter one may be a part of it.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= LEAST_SECRET}, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class TextLines(logging.Formatter):
    """A line as people read it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_TEXT)
        self.hide = SecretMask(secrets).hide

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without secrets."""
        return self.hide(super().format(record))


class JsonLines(TextLines):
    """A line as programs read it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object."""
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.hide(record.getMessage()),
        }
        if record.exc_info:
            line["error"] = self.hide(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class PrivateLogFile(RotatingFileHandler):
    """A log file that its owner alone can read, also after it was rotated."""

    def _open(self) -> TextIOWrapper:
        return os.fdopen(open_private(Path(self.baseFilename), os.O_WRONLY | os.O_APPEND), "a", encoding=self.encoding)


def start_logs(home: Path, *, is_verbose: bool) -> None:
    """Have what Hark logs written to `logs/hark.log`. A home that can't be written to logs nowhere."""
    logger = logging.getLogger("hark")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    form = logging.Formatter(_TEXT)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if is_verbose else []
    try:
        directory = home / "logs"
        private_folder(directory)
        handlers.append(PrivateLogFile(directory / "hark.log", maxBytes=FILE_BYTES, backupCount=FILES, delay=True))
    except OSError:
        pass  # the person is told of the home's trouble by what needs it
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)


def apply_log_settings(settings: LogSettings, secrets: Iterable[str] = ()) -> None:
    """Have all that Hark and its HTTP server log look like this from now on."""
    form = (JsonLines if settings.format == "json" else TextLines)(secrets)
    ours = logging.getLogger("hark")
    ours.setLevel(settings.level.upper())
    for handler in ours.handlers:
        handler.setFormatter(form)
    _take_over("uvicorn", ours.handlers)
    _take_over("", ours.handlers)


def hide_in_logs(secrets: Iterable[str]) -> None:
    """Have these secrets in no line of a log that was started without knowing any."""
    for handler in logging.getLogger("hark").handlers:
        if not isinstance(handler.formatter, TextLines):
            handler.setFormatter(TextLines(secrets))


def _take_over(name: str, handlers: Iterable[logging.Handler]) -> None:
    """Have the warnings of a library in our log: they would go to stderr as they are, with all that they know."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    for handler in handlers:
        if handler not in logger.handlers:
            logger.addHandler(handler)
