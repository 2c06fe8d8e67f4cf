"""Logs: to a file in the home, never to stdout; on stderr as well for who asks."""

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES = 2_000_000
FILES = 3


def start_logs(home: Path, *, is_verbose: bool) -> None:
    """Have what Hark logs written to `logs/hark.log`. A home that can't be written to logs nowhere."""
    logger = logging.getLogger("hark")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if is_verbose else []
    try:
        directory = home / "logs"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handlers.append(RotatingFileHandler(directory / "hark.log", maxBytes=FILE_BYTES, backupCount=FILES, delay=True))
    except OSError:
        pass  # the person is told of the home's trouble by what needs it
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)
