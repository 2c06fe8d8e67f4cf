"""Secrets in texts that others wrote: a server may repeat what it was sent, and an address may hold a key."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlsplit

SHORTEST_HIDDEN = 3  # less than that is no secret, and hiding it would garble every word
NAMES = re.compile(r"key|token|secret|passw|pwd|auth|credential|bearer|cookie", re.IGNORECASE)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets, in case a server repeats what it was sent."""
    for secret in secrets:
        if len(secret) >= SHORTEST_HIDDEN:
            text = text.replace(secret, "[hidden]")
    return text


def is_secret_name(name: str) -> bool:
    """Tell whether what stands under this name is likely a secret."""
    return bool(NAMES.search(name))


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
