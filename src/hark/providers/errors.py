"""What a server's failure means: which of our errors it is, and what to tell the person."""

import math
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec import Struct

from hark.protocol.provider import (
    BadKey,
    BadModel,
    BadRequest,
    ContentRefused,
    ContextTooLong,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    TransientProviderError,
)


class ErrorKind(Struct, frozen=True):
    """One of our errors, with a code of its own where the usual one says too little."""

    error: type[ProviderError]
    code: str = ""


ADVICE = {
    "bad_key": "Check the API key and what it may use.",
    "bad_model": "Check the model's name and the base URL.",
    "quota": "Check the account's balance.",
    "redirect": "Put the address that it points to in the base URL.",
}
_SERVER_ERROR = ErrorKind(TransientProviderError, "server_error")
_TIMEOUT = ErrorKind(TransientProviderError, "timeout")

# Names that say exactly what is wrong, whatever the status.
_EXACT_NAMES = {
    "context_length_exceeded": ErrorKind(ContextTooLong),  # OpenAI, OpenRouter
    "exceed_context_size_error": ErrorKind(ContextTooLong),  # llama.cpp
    "request_too_large": ErrorKind(ContextTooLong),  # Anthropic
    "model_not_found": ErrorKind(BadModel),  # OpenAI, LM Studio
    "not_found_error": ErrorKind(BadModel),  # Anthropic, Ollama
    "NotFoundError": ErrorKind(BadModel),  # vLLM
    "invalid_api_key": ErrorKind(BadKey),  # OpenAI
    "authentication_error": ErrorKind(BadKey),  # Anthropic, llama.cpp
    "permission_error": ErrorKind(BadKey),  # Anthropic
    "insufficient_quota": ErrorKind(QuotaExhausted),  # OpenAI, under 429
    "billing_hard_limit_reached": ErrorKind(QuotaExhausted),
    "billing_not_active": ErrorKind(QuotaExhausted),
    "billing_error": ErrorKind(QuotaExhausted),  # Anthropic
    "content_policy_violation": ErrorKind(ContentRefused),  # OpenAI
    "content_filter": ErrorKind(ContentRefused),
    "invalid_prompt": ErrorKind(ContentRefused),  # OpenAI Responses, as the next three
    "bio_policy": ErrorKind(ContentRefused),
    "misalignment_policy_violation": ErrorKind(ContentRefused),
    "image_content_policy_violation": ErrorKind(ContentRefused),
    "overloaded_error": ErrorKind(Overloaded),  # Anthropic
    "unavailable_error": ErrorKind(Overloaded),  # llama.cpp while it loads
    "timeout_error": _TIMEOUT,  # Anthropic
}

# What servers say, in small letters, where name and status say too little. Each is said of this one reason alone.
_PHRASES = (
    ("maximum context length", ErrorKind(ContextTooLong)),  # vLLM, OpenRouter, OpenAI
    ("prompt is too long", ErrorKind(ContextTooLong)),  # Anthropic
    ("exceed context limit", ErrorKind(ContextTooLong)),  # Anthropic: input and max_tokens together
    ("exceeds the context window", ErrorKind(ContextTooLong)),  # OpenAI Responses
    ("exceeds the available context size", ErrorKind(ContextTooLong)),  # llama.cpp
    ("exceeds the context length", ErrorKind(ContextTooLong)),  # Ollama
    ("model is loaded with context length", ErrorKind(ContextTooLong)),  # LM Studio
    ("greater than the context length", ErrorKind(ContextTooLong)),  # LM Studio
    ("request too large for", ErrorKind(ContextTooLong)),  # OpenAI under 429: no wait makes it smaller
    ("credit balance is too low", ErrorKind(QuotaExhausted)),  # Anthropic under 400
    ("blocked by content filtering policy", ErrorKind(ContentRefused)),  # Anthropic under 400
    ("is not a valid model id", ErrorKind(BadModel)),  # OpenRouter under 400
    ("no models loaded", ErrorKind(BadModel)),  # LM Studio
)

# Names that only repeat what a status would say: they count where there is none, inside a reply.
_BROAD_NAMES = {
    "rate_limit_error": ErrorKind(RateLimited),
    "rate_limit_exceeded": ErrorKind(RateLimited),
    "invalid_request_error": ErrorKind(BadRequest),
    "BadRequestError": ErrorKind(BadRequest),
    "invalid_image": ErrorKind(BadRequest),
    "invalid_image_format": ErrorKind(BadRequest),
    "invalid_base64_image": ErrorKind(BadRequest),
    "image_parse_error": ErrorKind(BadRequest),
    "image_too_large": ErrorKind(BadRequest),
    "image_too_small": ErrorKind(BadRequest),
    "unsupported_image_media_type": ErrorKind(BadRequest),
}

_STATUSES = {
    400: ErrorKind(BadRequest),
    401: ErrorKind(BadKey),
    402: ErrorKind(QuotaExhausted),
    403: ErrorKind(BadKey),
    404: ErrorKind(BadModel),
    408: _TIMEOUT,
    409: ErrorKind(TransientProviderError, "conflict"),
    413: ErrorKind(ContextTooLong),
    422: ErrorKind(BadRequest),
    429: ErrorKind(RateLimited),
    500: _SERVER_ERROR,
    502: _SERVER_ERROR,
    503: ErrorKind(Overloaded),
    504: _TIMEOUT,
    **dict.fromkeys(range(520, 525), _SERVER_ERROR),  # what a proxy says of a server that it can't reach
    529: ErrorKind(Overloaded),
}


def kind_of_words(names: Sequence[str], words: str, *, is_flagged: bool) -> ErrorKind | None:
    """Return what a failure is by its own signs, None when they say too little."""
    if is_flagged:
        return ErrorKind(ContentRefused)
    for name in names:
        if name in _EXACT_NAMES:
            return _EXACT_NAMES[name]
    small = words.lower()
    return next((kind for phrase, kind in _PHRASES if phrase in small), None)


def kind_of_status(status: int) -> ErrorKind:
    """Return what an error status alone means; an unknown one fails."""
    if 300 <= status < 400:
        return ErrorKind(ProviderError, "redirect")
    return _STATUSES.get(status) or ErrorKind(ProviderError, f"http_{status}")


def kind_inside_reply(names: Sequence[str]) -> ErrorKind:
    """Return what a failure in the middle of a reply is: it may pass, unless a name says otherwise."""
    return next((_BROAD_NAMES[name] for name in names if name in _BROAD_NAMES), _SERVER_ERROR)


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
