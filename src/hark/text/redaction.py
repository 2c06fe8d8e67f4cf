"""What looks like a secret: the names that secrets have, and the forms of keys and passwords in a text."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlsplit

SHORTEST_HIDDEN = 3  # less than that is no secret, and hiding it would garble every word
# Of settings, variables, headers and parameters. "oauth" and "author" name no secret, "authorization" does.
_NAMES = re.compile(
    r"key|token|secret|pass(?:w|phrase|code)|pwd|credential|bearer|cookie|(?<!o)auth(?!ors?(?![a-z]))", re.IGNORECASE
)
# Not compiled here: most starts never need them.
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY"
_API_KEY = (
    r"\b(?:sk|pk|rk)[-_](?=[\w-]*\d)[\w-]{16,}"
    r"|\bgh[opsru]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bA[KS]IA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abeprs]-[\w-]{10,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\b\d{8,10}:[A-Za-z0-9_-]{33,40}"
)
_SIGNED = r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\."
_IN_ADDRESS = r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@$]{3,}@"
# A word that says what it is, and behind it a value that is neither a plain word nor the name of a variable.
_NAMED = (
    r"(?i:pass(?:word|wd|phrase|code)|pwd|secret|token|api[ _-]?key|access[ _-]?key)\b[\"'`]?\s*(?:[:=]|\bis\b)\s*"
    r"[\"'`]?(?!\$)(?:\d{6,}|(?=\S*[A-Za-z])(?=\S*[\d!@#%^&*+=~])[^\s\"'`]{4,})"
)
_KINDS = {
    "a private key": _PRIVATE_KEY,
    "an API key": _API_KEY,
    "a signed token": _SIGNED,
    "a password in an address": _IN_ADDRESS,
    "a password or key": _NAMED,
}


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets, in case a server repeats what it was sent."""
    for secret in secrets:
        if len(secret) >= SHORTEST_HIDDEN:
            text = text.replace(secret, "[hidden]")
    return text


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under this name is likely a secret."""
    return bool(_NAMES.search(name))


def secrets_in_address(address: str) -> Iterator[str]:
    """Yield the password of an address, and what its query has under a name that promises a secret."""
    try:
        parts = urlsplit(address)
        password = parts.password
    except ValueError:
        return
    if password:
        yield password
    yield from (value for name, value in parse_qsl(parts.query) if is_secret_name(name))


def secret_in(text: str) -> str | None:
    """Return what kind of secret a text seems to have in it; None when it seems to have none."""
    return next((kind for kind, pattern in _KINDS.items() if re.search(pattern, text)), None)
