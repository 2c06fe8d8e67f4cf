from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hark.protocol.provider import TransientProviderError
from hark.providers.errors import http_error, reply_error, seconds_until, server_words


@pytest.mark.parametrize(
    ("body", "words"),
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
def test_the_servers_own_words_are_found(body: str, words: str) -> None:
    assert server_words(body) == words


def test_only_the_beginning_of_a_long_body_is_told() -> None:
    assert server_words("x" * 5000) == "x" * 500
    assert server_words('{"error": "' + "y" * 5000 + '"}') == "y" * 500


def test_retry_after_is_seconds_or_a_date() -> None:
    assert seconds_until("2.5") == 2.5
    assert seconds_until("-3") == 0.0
    later = seconds_until(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    assert later is not None
    assert 85 < later <= 90
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert seconds_until(past) == 0.0


@pytest.mark.parametrize("header", ["", "soon", "nan", "inf", "Mon, 99 Foo"])
def test_a_retry_after_that_says_nothing_is_none(header: str) -> None:
    assert seconds_until(header) is None


def test_an_error_status_without_a_reason_says_so() -> None:
    assert "no reason given" in str(http_error(500, ""))


def test_a_lasting_error_says_what_to_do() -> None:
    assert str(http_error(401, '{"error": "Wrong key."}')).endswith("Wrong key. Check the API key and what it may use.")


def test_an_error_inside_a_reply_is_passing_unless_it_names_a_lasting_reason() -> None:
    assert isinstance(reply_error({"message": "busy", "type": "overloaded_error"}), TransientProviderError)
    assert isinstance(reply_error({"message": "busy", "code": 503}), TransientProviderError)
    lasting = reply_error({"message": "too long", "code": "context_length_exceeded"})
    assert not isinstance(lasting, TransientProviderError)
    assert "too long" in str(lasting)
