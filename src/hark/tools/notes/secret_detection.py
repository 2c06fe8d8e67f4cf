"""Tells words that look like a secret, so that they are not kept where every request would carry them."""

import re

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


def secret_in(text: str) -> str | None:
    """Return what kind of secret a text seems to have in it; None when it seems to have none."""
    return next((kind for kind, pattern in _KINDS.items() if re.search(pattern, text)), None)
