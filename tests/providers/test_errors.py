from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hark.protocol.provider import TransientProviderError
from hark.providers.errors import extract_reason, parse_http_error, parse_reply_error, parse_retry_after


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"error": {"message": "no such model"}}', "no such model"),
        ('{"error": "flat"}', "flat"),
        ('{"message": "at the top"}', "at the top"),
        ('{"detail": "elsewhere"}', "elsewhere"),
        ('{"error": {"code": 7}}', '{"code":7}'),
        ("<h1>Bad\n  Gateway</h1>", "<h1>Bad Gateway</h1>"),
        ("[1]", "[1]"),
        ("", ""),
    ],
)
def test_the_servers_error_reason_is_extracted(body: str, reason: str) -> None:
    assert extract_reason(body) == reason


def test_a_long_error_reason_is_truncated() -> None:
    assert extract_reason("x" * 5000) == "x" * 500
    assert extract_reason('{"error": "' + "y" * 5000 + '"}') == "y" * 500


def test_retry_after_is_parsed_as_seconds_or_a_date() -> None:
    assert parse_retry_after("2.5") == 2.5
    assert parse_retry_after("-3") == 0.0
    later = parse_retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    assert later is not None
    assert 85 < later <= 90
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert parse_retry_after(past) == 0.0


@pytest.mark.parametrize("header", ["", "soon", "nan", "inf", "Mon, 99 Foo"])
def test_an_invalid_retry_after_is_ignored(header: str) -> None:
    assert parse_retry_after(header) is None


def test_an_error_response_without_a_reason_is_reported_as_such() -> None:
    assert "no reason given" in str(parse_http_error(500, ""))


def test_a_permanent_error_contains_advice() -> None:
    assert str(parse_http_error(401, '{"error": "Wrong key."}')).endswith(
        "Wrong key. Check the API key and its permissions."
    )


def test_an_error_in_a_reply_is_transient_unless_it_names_a_permanent_reason() -> None:
    assert isinstance(parse_reply_error({"message": "busy", "type": "overloaded_error"}), TransientProviderError)
    assert isinstance(parse_reply_error({"message": "busy", "code": 503}), TransientProviderError)
    lasting = parse_reply_error({"message": "too long", "code": "context_length_exceeded"})
    assert not isinstance(lasting, TransientProviderError)
    assert "too long" in str(lasting)
