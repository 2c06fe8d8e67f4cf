"""Logs: to a file in the home, never to stdout; on stderr as well for who asks."""

import logging
import os
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from hark.disk.private_files import open_private, private_folder

FILE_BYTES = 2_000_000
FILES = 3


class PrivateLogFile(RotatingFileHandler):
    """A log file that its owner alone can read, also after it was rotated."""

    def _open(self) -> TextIOWrapper:
        return os.fdopen(open_private(Path(self.baseFilename), os.O_WRONLY | os.O_APPEND), "a", encoding=self.encoding)


def start_logs(home: Path, *, is_verbose: bool) -> None:
    """Have what Hark logs written to `logs/hark.log`. A home that can't be written to logs nowhere."""
    logger = logging.getLogger("hark")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
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
