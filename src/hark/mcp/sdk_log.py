"""What the SDK logs: a line each in our own log, never a traceback on somebody's screen."""

import logging

_LOGGERS = ("mcp", "client", "httpx2", "httpcore2")
_OURS = logging.getLogger("hark.mcp.sdk")


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
