"""The signs by which servers tell why they fail, and the error that each one is."""

from collections.abc import Sequence

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
