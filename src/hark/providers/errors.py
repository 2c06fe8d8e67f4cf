"""What a server's failure means: which of our errors it is, and what to tell the person."""

import math
import time
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.provider import ProviderError, TransientProviderError
from hark.providers.error_kinds import ADVICE, ErrorKind, kind_inside_reply, kind_of_status, kind_of_words

MAX_WORDS = 500
NO_WORDS = "no reason given"


class Failure(Struct, frozen=True):
    """What a server said of a failure: its own words, and the names that it gave the reason."""

    words: str = ""
    names: tuple[str, ...] = ()
    status: int | None = None
    is_flagged: bool = False


class _ErrorBody(Struct):
    error: Any = None
    message: Any = None
    detail: Any = None
    type: Any = None
    code: Any = None


class _Metadata(Struct):
    flagged_input: Any = None
    reasons: Any = None
    raw: Any = None  # what the server behind this one said


class _ErrorObject(Struct):
    message: Any = None
    code: Any = None
    type: Any = None
    status: Any = None
    metadata: Any = None


def http_error(status: int, body: str, retry_after: str = "") -> ProviderError:
    """Return what a refused request means; `retry_after` is the header of that name."""
    failure = _failure_in(body)
    return _error(f"The model server answered {status}", failure, status, seconds_until(retry_after))


def reply_error(error: Any) -> ProviderError:
    """Return what an `error` object inside a reply means; unless it names a lasting reason, it may pass."""
    failure = _failure_of(error)
    return _error("The model server broke the reply off", failure, failure.status, None)


def bad_stream(what: str) -> TransientProviderError:
    """Return the error for a reply that can't be read."""
    return TransientProviderError(f"The model server sent {what}. If it stays so, check the base URL.", "bad_stream")


def server_words(body: str) -> str:
    """Return the server's own reason out of an error's body, or the body's beginning."""
    return _failure_in(body).words


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


def _error(beginning: str, failure: Failure, status: int | None, retry_after: float | None) -> ProviderError:
    """The most exact sign counts: a flag, a name, then the words, and the status only when nothing else tells."""
    kind = kind_of_words(failure.names, failure.words, is_flagged=failure.is_flagged)
    if kind is None:
        kind = kind_inside_reply(failure.names) if status is None else kind_of_status(status)
    text = f"{beginning}: {failure.words or NO_WORDS}"
    if advice := ADVICE.get(kind.code or kind.error.usual_code):
        text = f"{text.rstrip('.')}. {advice}"
    return _made(kind, text, retry_after)


def _made(kind: ErrorKind, text: str, retry_after: float | None) -> ProviderError:
    if issubclass(kind.error, TransientProviderError):
        return kind.error(text, kind.code, retry_after)
    return kind.error(text, kind.code)


def _failure_in(body: str) -> Failure:
    try:
        parsed = msgspec.json.decode(body, type=_ErrorBody)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Failure(" ".join(body[: MAX_WORDS * 4].split())[:MAX_WORDS])
    inner = _failure_of(parsed.error)
    words = inner.words or _words_of(parsed.message) or _words_of(parsed.detail) or body
    names = inner.names or _names(parsed.code, parsed.type)
    return Failure(words[:MAX_WORDS], names, inner.status, inner.is_flagged)


def _failure_of(error: Any) -> Failure:
    words = _words_of(error)[:MAX_WORDS]
    try:
        parsed = msgspec.convert(error, _ErrorObject)
    except msgspec.ValidationError:  # a plain text
        return Failure(words)
    codes = (parsed.code, parsed.type, parsed.status)
    status = next((code for code in codes if isinstance(code, int) and 400 <= code < 600), None)
    metadata = _metadata(parsed.metadata)
    behind = _failure_in(metadata.raw) if isinstance(metadata.raw, str) and metadata.raw else Failure()
    words = f"{words}: {behind.words}"[:MAX_WORDS] if behind.words else words
    is_flagged = bool(metadata.flagged_input or metadata.reasons)
    return Failure(words, _names(*codes) + behind.names, status, is_flagged)


def _names(*values: Any) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _metadata(metadata: Any) -> _Metadata:
    try:
        return msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError:
        return _Metadata()


def _words_of(error: Any) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        message: Any = error.get("message")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return message if isinstance(message, str) and message else msgspec.json.encode(error).decode()
    return "" if error is None else str(error)
