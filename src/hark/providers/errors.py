"""Maps failures of model servers to provider errors with messages for the user."""

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
    """An error class, with a code that overrides the default of the class."""

    error: type[ProviderError]
    code: str = ""


ADVICE = {
    "bad_key": "Check the API key and its permissions.",
    "bad_model": "Check the model's name and the base URL.",
    "quota": "Check the account's balance.",
    "redirect": "Use that URL as the base URL.",
}
_SERVER_ERROR = ErrorKind(TransientProviderError, "server_error")
_TIMEOUT = ErrorKind(TransientProviderError, "timeout")

# Error names that identify the problem regardless of the status.
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
    "invalid_prompt": ErrorKind(ContentRefused),  # OpenAI Responses, like the next three
    "bio_policy": ErrorKind(ContentRefused),
    "misalignment_policy_violation": ErrorKind(ContentRefused),
    "image_content_policy_violation": ErrorKind(ContentRefused),
    "overloaded_error": ErrorKind(Overloaded),  # Anthropic
    "unavailable_error": ErrorKind(Overloaded),  # llama.cpp while it loads
    "timeout_error": _TIMEOUT,  # Anthropic
}

# Lower-case phrases in error messages, used where name and status are ambiguous. Each has exactly one meaning.
_PHRASES = (
    ("maximum context length", ErrorKind(ContextTooLong)),  # vLLM, OpenRouter, OpenAI
    ("prompt is too long", ErrorKind(ContextTooLong)),  # Anthropic
    ("exceed context limit", ErrorKind(ContextTooLong)),  # Anthropic: input and max_tokens combined
    ("exceeds the context window", ErrorKind(ContextTooLong)),  # OpenAI Responses
    ("exceeds the available context size", ErrorKind(ContextTooLong)),  # llama.cpp
    ("exceeds the context length", ErrorKind(ContextTooLong)),  # Ollama
    ("model is loaded with context length", ErrorKind(ContextTooLong)),  # LM Studio
    ("greater than the context length", ErrorKind(ContextTooLong)),  # LM Studio
    ("request too large for", ErrorKind(ContextTooLong)),  # OpenAI under 429; waiting does not help
    ("credit balance is too low", ErrorKind(QuotaExhausted)),  # Anthropic under 400
    ("blocked by content filtering policy", ErrorKind(ContentRefused)),  # Anthropic under 400
    ("is not a valid model id", ErrorKind(BadModel)),  # OpenRouter under 400
    ("no models loaded", ErrorKind(BadModel)),  # LM Studio
)

# Error names that only repeat a status. They are used for errors inside a reply, which has no status.
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
    **dict.fromkeys(range(520, 525), _SERVER_ERROR),  # a proxy can't reach the server
    529: ErrorKind(Overloaded),
}


def classify_by_details(names: Sequence[str], text: str, *, is_flagged: bool) -> ErrorKind | None:
    """Classify a failure by its content flag, error names and text. Return None if they don't identify its kind."""
    if is_flagged:
        return ErrorKind(ContentRefused)
    for name in names:
        if name in _EXACT_NAMES:
            return _EXACT_NAMES[name]
    lower = text.lower()
    return next((kind for phrase, kind in _PHRASES if phrase in lower), None)


def classify_by_status(status: int) -> ErrorKind:
    """Classify a failure by its HTTP status alone. Unknown statuses are permanent failures."""
    if 300 <= status < 400:
        return ErrorKind(ProviderError, "redirect")
    return _STATUSES.get(status) or ErrorKind(ProviderError, f"http_{status}")


def classify_reply_error(names: Sequence[str]) -> ErrorKind:
    """Classify a failure inside a reply, which is transient unless an error name says otherwise."""
    return next((_BROAD_NAMES[name] for name in names if name in _BROAD_NAMES), _SERVER_ERROR)


MAX_REASON_CHARACTERS = 500
NO_REASON = "no reason given"


class VendorErrorDetails(Struct, frozen=True):
    """Error details from a server: the reason as text, and the names of the error."""

    reason: str = ""
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
    raw: Any = None  # the error of the upstream server


class _ErrorObject(Struct):
    message: Any = None
    code: Any = None
    type: Any = None
    status: Any = None
    metadata: Any = None


def parse_http_error(status: int, body: str, retry_after: str = "") -> ProviderError:
    """Return the provider error for an error response. `retry_after` is the header of that name."""
    details = _parse_error_body(body)
    return _build_error(f"The model server answered {status}", details, status, parse_retry_after(retry_after))


def parse_reply_error(error: Any) -> ProviderError:
    """Return the provider error for an `error` object in a reply: transient unless it names a permanent reason."""
    details = _parse_error_object(error)
    return _build_error("The model server aborted the reply", details, details.status, None)


def make_bad_stream_error(content: str) -> TransientProviderError:
    """Return the error for a reply that can't be parsed. `content` describes the unexpected content."""
    return TransientProviderError(
        f"The model server sent {content}. If this happens again, check the base URL.", "bad_stream"
    )


def extract_reason(body: str) -> str:
    """Return the server's reason from an error body, or the start of the body."""
    return _parse_error_body(body).reason


def parse_retry_after(retry_after: str) -> float | None:
    """Parse a Retry-After header, in seconds or as a date. Return the seconds to wait, or None if it is invalid."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _build_error(
    prefix: str, details: VendorErrorDetails, status: int | None, retry_after: float | None
) -> ProviderError:
    """Build the error from the most precise information: the content flag, the names, the text, or else the status."""
    kind = classify_by_details(details.names, details.reason, is_flagged=details.is_flagged)
    if kind is None:
        kind = classify_reply_error(details.names) if status is None else classify_by_status(status)
    text = f"{prefix}: {details.reason or NO_REASON}"
    if advice := ADVICE.get(kind.code or kind.error.default_code):
        text = f"{text.rstrip('.')}. {advice}"
    return _instantiate_error(kind, text, retry_after)


def _instantiate_error(kind: ErrorKind, text: str, retry_after: float | None) -> ProviderError:
    if issubclass(kind.error, TransientProviderError):
        return kind.error(text, kind.code, retry_after)
    return kind.error(text, kind.code)


def _parse_error_body(body: str) -> VendorErrorDetails:
    try:
        parsed = msgspec.json.decode(body, type=_ErrorBody)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return VendorErrorDetails(" ".join(body[: MAX_REASON_CHARACTERS * 4].split())[:MAX_REASON_CHARACTERS])
    inner = _parse_error_object(parsed.error)
    reason = inner.reason or _extract_message(parsed.message) or _extract_message(parsed.detail) or body
    names = inner.names or _select_names(parsed.code, parsed.type)
    return VendorErrorDetails(reason[:MAX_REASON_CHARACTERS], names, inner.status, inner.is_flagged)


def _parse_error_object(error: Any) -> VendorErrorDetails:
    reason = _extract_message(error)[:MAX_REASON_CHARACTERS]
    try:
        parsed = msgspec.convert(error, _ErrorObject)
    except msgspec.ValidationError:  # plain text
        return VendorErrorDetails(reason)
    codes = (parsed.code, parsed.type, parsed.status)
    status = next((code for code in codes if isinstance(code, int) and 400 <= code < 600), None)
    metadata = _parse_metadata(parsed.metadata)
    upstream = (
        _parse_error_body(metadata.raw) if isinstance(metadata.raw, str) and metadata.raw else VendorErrorDetails()
    )
    reason = f"{reason}: {upstream.reason}"[:MAX_REASON_CHARACTERS] if upstream.reason else reason
    is_flagged = bool(metadata.flagged_input or metadata.reasons)
    return VendorErrorDetails(reason, _select_names(*codes) + upstream.names, status, is_flagged)


def _select_names(*values: Any) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _parse_metadata(metadata: Any) -> _Metadata:
    try:
        return msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError:
        return _Metadata()


def _extract_message(error: Any) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        message: Any = error.get("message")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return message if isinstance(message, str) and message else msgspec.json.encode(error).decode()
    return "" if error is None else str(error)
