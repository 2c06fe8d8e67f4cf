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


class Kind(Struct, frozen=True):
    """One of our errors, with a code of its own where the usual one says too little."""

    error: type[ProviderError]
    code: str = ""


ADVICE = {
    "bad_key": "Check the API key and what it may use.",
    "bad_model": "Check the model's name and the base URL.",
    "quota": "Check the account's balance.",
    "redirect": "Put the address that it points to in the base URL.",
}
_SERVER_ERROR = Kind(TransientProviderError, "server_error")
_TIMEOUT = Kind(TransientProviderError, "timeout")

# Names that say exactly what is wrong, whatever the status.
_EXACT_NAMES = {
    "context_length_exceeded": Kind(ContextTooLong),  # OpenAI, OpenRouter
    "exceed_context_size_error": Kind(ContextTooLong),  # llama.cpp
    "request_too_large": Kind(ContextTooLong),  # Anthropic
    "model_not_found": Kind(BadModel),  # OpenAI, LM Studio
    "not_found_error": Kind(BadModel),  # Anthropic, Ollama
    "NotFoundError": Kind(BadModel),  # vLLM
    "invalid_api_key": Kind(BadKey),  # OpenAI
    "authentication_error": Kind(BadKey),  # Anthropic, llama.cpp
    "permission_error": Kind(BadKey),  # Anthropic
    "insufficient_quota": Kind(QuotaExhausted),  # OpenAI, under 429
    "billing_hard_limit_reached": Kind(QuotaExhausted),
    "billing_not_active": Kind(QuotaExhausted),
    "billing_error": Kind(QuotaExhausted),  # Anthropic
    "content_policy_violation": Kind(ContentRefused),  # OpenAI
    "content_filter": Kind(ContentRefused),
    "invalid_prompt": Kind(ContentRefused),  # OpenAI Responses, as the next three
    "bio_policy": Kind(ContentRefused),
    "misalignment_policy_violation": Kind(ContentRefused),
    "image_content_policy_violation": Kind(ContentRefused),
    "overloaded_error": Kind(Overloaded),  # Anthropic
    "unavailable_error": Kind(Overloaded),  # llama.cpp while it loads
    "timeout_error": _TIMEOUT,  # Anthropic
}

# What servers say, in small letters, where name and status say too little. Each is said of this one reason alone.
_PHRASES = (
    ("maximum context length", Kind(ContextTooLong)),  # vLLM, OpenRouter, OpenAI
    ("prompt is too long", Kind(ContextTooLong)),  # Anthropic
    ("exceed context limit", Kind(ContextTooLong)),  # Anthropic: input and max_tokens together
    ("exceeds the context window", Kind(ContextTooLong)),  # OpenAI Responses
    ("exceeds the available context size", Kind(ContextTooLong)),  # llama.cpp
    ("exceeds the context length", Kind(ContextTooLong)),  # Ollama
    ("model is loaded with context length", Kind(ContextTooLong)),  # LM Studio
    ("greater than the context length", Kind(ContextTooLong)),  # LM Studio
    ("request too large for", Kind(ContextTooLong)),  # OpenAI under 429: no wait makes it smaller
    ("credit balance is too low", Kind(QuotaExhausted)),  # Anthropic under 400
    ("blocked by content filtering policy", Kind(ContentRefused)),  # Anthropic under 400
    ("is not a valid model id", Kind(BadModel)),  # OpenRouter under 400
    ("no models loaded", Kind(BadModel)),  # LM Studio
)

# Names that only repeat what a status would say: they count where there is none, inside a reply.
_BROAD_NAMES = {
    "rate_limit_error": Kind(RateLimited),
    "rate_limit_exceeded": Kind(RateLimited),
    "invalid_request_error": Kind(BadRequest),
    "BadRequestError": Kind(BadRequest),
    "invalid_image": Kind(BadRequest),
    "invalid_image_format": Kind(BadRequest),
    "invalid_base64_image": Kind(BadRequest),
    "image_parse_error": Kind(BadRequest),
    "image_too_large": Kind(BadRequest),
    "image_too_small": Kind(BadRequest),
    "unsupported_image_media_type": Kind(BadRequest),
}

_STATUSES = {
    400: Kind(BadRequest),
    401: Kind(BadKey),
    402: Kind(QuotaExhausted),
    403: Kind(BadKey),
    404: Kind(BadModel),
    408: _TIMEOUT,
    409: Kind(TransientProviderError, "conflict"),
    413: Kind(ContextTooLong),
    422: Kind(BadRequest),
    429: Kind(RateLimited),
    500: _SERVER_ERROR,
    502: _SERVER_ERROR,
    503: Kind(Overloaded),
    504: _TIMEOUT,
    **dict.fromkeys(range(520, 525), _SERVER_ERROR),  # what a proxy says of a server that it can't reach
    529: Kind(Overloaded),
}


def kind_of_words(names: Sequence[str], words: str, *, is_flagged: bool) -> Kind | None:
    """Return what a failure is by its own signs, None when they say too little."""
    if is_flagged:
        return Kind(ContentRefused)
    for name in names:
        if name in _EXACT_NAMES:
            return _EXACT_NAMES[name]
    small = words.lower()
    return next((kind for phrase, kind in _PHRASES if phrase in small), None)


def kind_of_status(status: int) -> Kind:
    """Return what an error status alone means; an unknown one fails."""
    if 300 <= status < 400:
        return Kind(ProviderError, "redirect")
    return _STATUSES.get(status) or Kind(ProviderError, f"http_{status}")


def kind_inside_reply(names: Sequence[str]) -> Kind:
    """Return what a failure in the middle of a reply is: it may pass, unless a name says otherwise."""
    return next((_BROAD_NAMES[name] for name in names if name in _BROAD_NAMES), _SERVER_ERROR)
