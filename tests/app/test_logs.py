"""Log lines: as text or JSON, without secrets."""

import io
import json
import logging

from hark.app.logs import JsonLines, TextLines, hide_in_logs

SECRET = "quite-a-secret"


def record(words: str, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    return logging.LogRecord("hark.test", logging.WARNING, "", 0, "%s", (words,), info)


def test_text_hides_what_is_known_to_be_secret() -> None:
    line = TextLines([SECRET, ""]).format(record(f"with {SECRET}", ValueError(SECRET)))
    assert SECRET not in line
    assert "WARNING hark.test: with (secret)" in line


def test_json_is_one_object_a_line() -> None:
    line = JsonLines([SECRET]).format(record(f"a\nb {SECRET}", ValueError(SECRET)))
    assert "\n" not in line
    told = json.loads(line)
    assert (told["level"], told["logger"], told["message"]) == ("warning", "hark.test", "a\nb (secret)")
    assert SECRET not in line


def test_a_log_that_was_started_first_hides_what_becomes_known_later() -> None:
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("hark")
    logger.addHandler(handler)
    try:
        hide_in_logs([SECRET])
        assert SECRET not in handler.format(record(f"with {SECRET}"))
    finally:
        logger.removeHandler(handler)
