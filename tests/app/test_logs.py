"""Log lines: as text or JSON, without secrets."""

import io
import json
import logging

from hark.app.logs import JsonLogFormatter, TextLogFormatter, redact_in_logs

SECRET = "quite-a-secret"


def make_record(text: str, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    return logging.LogRecord("hark.test", logging.WARNING, "", 0, "%s", (text,), info)


def test_text_log_lines_redact_known_secrets() -> None:
    line = TextLogFormatter([SECRET, ""]).format(make_record(f"with {SECRET}", ValueError(SECRET)))
    assert SECRET not in line
    assert "WARNING hark.test: with (secret)" in line


def test_each_json_log_line_is_one_object() -> None:
    line = JsonLogFormatter([SECRET]).format(make_record(f"a\nb {SECRET}", ValueError(SECRET)))
    assert "\n" not in line
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"]) == ("warning", "hark.test", "a\nb (secret)")
    assert SECRET not in line


def test_secrets_added_after_logging_started_are_redacted() -> None:
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("hark")
    logger.addHandler(handler)
    try:
        redact_in_logs([SECRET])
        assert SECRET not in handler.format(make_record(f"with {SECRET}"))
    finally:
        logger.removeHandler(handler)
