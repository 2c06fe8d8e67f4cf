"""Detects secrets by the names of settings and by the patterns of keys and passwords in text."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlsplit

MIN_SECRET_CHARACTERS = 3  # a shorter value isn't a secret, and hiding it would garble other text
# Names of settings, variables, headers and parameters. "oauth" and "author" don't name a secret, "authorization"
# does.
_SECRET_NAMES = re.compile(
    r"key|token|secret|pass(?:w|phrase|code)|pwd|credential|bearer|cookie|(?<!o)auth(?!ors?(?![a-z]))", re.IGNORECASE
)
# Compiled on first use, because most runs never need them. Repetitions have limits, so that the search takes time in
# proportion to the text.
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY"
_API_KEY = (
    r"\b(?:sk|pk|rk)[-_](?=[\w-]{0,200}\d)[\w-]{16,}"
    r"|\bgh[opsru]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bA[KS]IA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abeprs]-[\w-]{10,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\b\d{8,10}:[A-Za-z0-9_-]{33,40}"
)
_SIGNED_JWT = r"\beyJ[\w-]{8,2000}\.eyJ[\w-]{8,}\."
_URL_CREDENTIALS = r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@$]{3,200}@"
# A word such as "password", followed by a value that is neither a plain word nor the name of a variable.
_LABELLED_VALUE = (
    r"(?i:pass(?:word|wd|phrase|code)|pwd|secret|token|api[ _-]?key|access[ _-]?key)\b[\"'`]?\s{0,20}(?:[:=]|\bis\b)"
    r"\s{0,20}[\"'`]?(?!\$)(?:\d{6,}|(?=\S{0,200}[A-Za-z])(?=\S{0,200}[\d!@#%^&*+=~])[^\s\"'`]{4,})"
)
_SECRET_PATTERNS = {
    "a private key": _PRIVATE_KEY,
    "an API key": _API_KEY,
    "a signed token": _SIGNED_JWT,
    "a password in a URL": _URL_CREDENTIALS,
    "a password or key": _LABELLED_VALUE,
}


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace each of the secrets in the text with `[hidden]`. For example, a server may echo the API key."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARACTERS:
            text = text.replace(secret, "[hidden]")
    return text


def is_secret_name(name: str) -> bool:
    """Return whether a value with this name is likely a secret."""
    return bool(_SECRET_NAMES.search(name))


def find_secrets_in_url(url: str) -> Iterator[str]:
    """Yield the password of a URL, and the values of query parameters whose names suggest a secret."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        yield password
    yield from (value for name, value in parse_qsl(parts.query) if is_secret_name(name))


def detect_secret(text: str) -> str | None:
    """Return the kind of secret that the text seems to contain, such as `an API key`, or None."""
    return next((kind for kind, pattern in _SECRET_PATTERNS.items() if re.search(pattern, text)), None)
