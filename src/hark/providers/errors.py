"""What a server's failure means: whether to ask again, and what to tell the person."""

import math
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.provider import ProviderError, TransientProviderError

MAX_WORDS = 500
_TRANSIENT_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_STATUS_CODES = {400: "bad_request", 401: "bad_key", 402: "quota", 403: "bad_key", 404: "bad_model"}
_TRANSIENT_CODES = {408: "timeout", 409: "conflict", 429: "rate_limit", 529: "overloaded", 503: "overloaded"}
_ADVICE = {
    "bad_key": "Check the API key and what it may use.",
    "bad_model": "Check the model's name and the base URL.",
    "quota": "Check the account's balance.",
    "redirect": "Put the address that it points to in the base URL.",
}
# What servers call an error that comes inside a reply, where no status can tell.
_LASTING_KINDS = {
    "invalid_request_error": "bad_request",
    "context_length_exceeded": "bad_request",
    "authentication_error": "bad_key",
    "invalid_api_key": "bad_key",
    "permission_error": "bad_key",
    "not_found_error": "bad_model",
    "model_not_found": "bad_model",
    "insufficient_quota": "quota",
    "billing_error": "quota",
}


class _ErrorBody(Struct):
    error: Any = None
    message: Any = None
    detail: Any = None


def http_error(status: int, body: str, retry_after: str = "") -> ProviderError:
    """Return what a refused request means; `retry_after` is the header of that name."""
    words = server_words(body) or "no reason given"
    text = f"The model server answered {status}: {words}"
    if status in _TRANSIENT_STATUSES:
        return TransientProviderError(
            text, code=_TRANSIENT_CODES.get(status, "server_error"), retry_after=seconds_until(retry_after)
        )
    code = "redirect" if 300 <= status < 400 else _STATUS_CODES.get(status, f"http_{status}")
    advice = _ADVICE.get(code, "")
    return ProviderError(f"{text.rstrip('.')}. {advice}" if advice else text, code=code)


def reply_error(error: Any) -> ProviderError:
    """Return what an `error` object inside a reply means; unless it names a lasting reason, it may pass."""
    words = _words_of(error)[:MAX_WORDS] or "no reason given"
    text = f"The model server broke the reply off: {words}"
    if isinstance(error, dict):
        for kind in (error.get("code"), error.get("type"), error.get("status")):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            if isinstance(kind, int) and 400 <= kind < 600:
                return http_error(kind, words)
            if isinstance(kind, str) and kind in _LASTING_KINDS:
                return ProviderError(text, code=_LASTING_KINDS[kind])
    return TransientProviderError(text, code="server_error")


def bad_stream(what: str) -> TransientProviderError:
    """Return the error for a reply that can't be read."""
    return TransientProviderError(f"The model server sent {what}. If it stays so, check the base URL.", "bad_stream")


def server_words(body: str) -> str:
    """Return the server's own reason out of an error's body, or the body's beginning."""
    try:
        parsed = msgspec.json.decode(body, type=_ErrorBody)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return " ".join(body[: MAX_WORDS * 4].split())[:MAX_WORDS]
    words = _words_of(parsed.error) or _words_of(parsed.message) or _words_of(parsed.detail)
    return (words or body)[:MAX_WORDS]


def seconds_until(retry_after: str) -> float | None:
    """Return how long a Retry-After header asks to wait: it holds seconds or a date."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets, in case a server repeats what it was sent."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[hidden]")
    return text


def _words_of(error: Any) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        message: Any = error.get("message")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return message if isinstance(message, str) and message else msgspec.json.encode(error).decode()
    return "" if error is None else str(error)
