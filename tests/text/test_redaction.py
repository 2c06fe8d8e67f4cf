"""Secrets in URLs are found, so that logs and errors can hide them."""

import pytest

from hark.text.redaction import find_secrets_in_url


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("https://ann:s3cret-word@example.org/path", ["s3cret-word"]),
        ("https://example.org/?api_key=abcdefgh&page=2&token=12345678", ["abcdefgh", "12345678"]),
        ("https://ann:s3cret-word@example.org/?token=12345678", ["s3cret-word", "12345678"]),
        ("https://ann@example.org/?page=2", []),
        ("https://[broken", []),
    ],
)
def test_the_password_and_secret_parameters_of_a_url_are_found(url: str, secrets: list[str]) -> None:
    assert list(find_secrets_in_url(url)) == secrets
