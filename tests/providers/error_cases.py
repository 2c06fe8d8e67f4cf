"""Error responses quoted from model servers, and the error class that each must be mapped to."""

import json
from dataclasses import dataclass
from typing import Any

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
from hark.providers.anthropic.provider import Anthropic
from hark.providers.openai.chat import OpenAIChat
from hark.providers.openai.responses import OpenAIResponses
from tests.fakes.models.behaviours import Behaviour, Exchange, dropped, events, garbage, html, http_response
from tests.providers.provider_fixture import APIS, Api


@dataclass(frozen=True)
class ErrorCase:
    """A failure of a model server: its description, the fake server's behaviour, and the expected error."""

    server: str
    description: str
    behaviour: Behaviour
    error: type[ProviderError]
    code: str
    apis: tuple[Api, ...]


CHAT: tuple[Api, ...] = (OpenAIChat,)
OPENAI: tuple[Api, ...] = (OpenAIChat, OpenAIResponses)
MESSAGES: tuple[Api, ...] = (Anthropic,)


def _error_response(
    server: str, status: int, error: Any, kind: type[ProviderError], apis: tuple[Api, ...] = CHAT, code: str = ""
) -> ErrorCase:
    """Return the error case for a response with this status and with this error in its body."""
    fields: dict[str, Any] = {"message": error} if isinstance(error, str) else error
    names: list[str] = [f"`{fields[name]}`" for name in ("code", "type") if isinstance(fields.get(name), str)]
    description = " ".join([str(status), *names, f"“{fields['message']}”"])
    body: dict[str, Any] = {"type": "error", "error": error} if apis is MESSAGES else {"error": error}
    return ErrorCase(
        server, description, http_response(status, json.dumps(body).encode()), kind, code or kind.default_code, apis
    )


def _status_without_reason(status: int, kind: type[ProviderError], code: str = "") -> ErrorCase:
    return ErrorCase(
        "any", f"{status}, without a known reason", http_response(status, b"?"), kind, code or kind.default_code, APIS
    )


def _error_in_reply(
    server: str, description: str, event: Any, kind: type[ProviderError], apis: tuple[Api, ...], code: str
) -> ErrorCase:
    return ErrorCase(server, f"inside a reply: {description}", events([event]), kind, code, apis)


async def _hang_up(exchange: Exchange) -> None:
    exchange.drop()


def _error_object(name: str, message: str, **fields: Any) -> dict[str, Any]:
    return {"type": name, "message": message, **fields}


def _context_overflow_error(name: str) -> dict[str, Any]:
    return _error_object(name, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded")


FLAGGED = {"reasons": ["violence"], "flagged_input": "..."}
UPSTREAM = {"raw": '{"error": {"message": "maximum context length is 8192 tokens"}}', "provider_name": "One"}
LIMITED = http_response(429, b'{"error": {"message": "Rate limit reached"}}', "Retry-After: 7\r\n")

CASES: list[ErrorCase] = [
    ErrorCase("any", "429 with `Retry-After`", LIMITED, RateLimited, "rate_limit", APIS),
    _error_response("OpenAI", 400, _context_overflow_error("invalid_request_error"), ContextTooLong, OPENAI),
    _error_response(
        "OpenAI",
        401,
        _error_object("invalid_request_error", "Incorrect API key", code="invalid_api_key"),
        BadKey,
        OPENAI,
    ),
    _error_response(
        "OpenAI", 404, _error_object("invalid_request_error", "No such model", code="model_not_found"), BadModel, OPENAI
    ),
    _error_response("OpenAI", 400, _error_object("invalid_request_error", "Unknown parameter"), BadRequest, OPENAI),
    _error_response(
        "OpenAI",
        400,
        _error_object("invalid_request_error", "Not allowed", code="content_policy_violation"),
        ContentRefused,
        OPENAI,
    ),
    _error_response(
        "OpenAI", 429, _error_object("tokens", "Rate limit reached", code="rate_limit_exceeded"), RateLimited, OPENAI
    ),
    _error_response(
        "OpenAI",
        429,
        _error_object("tokens", "Request too large for gpt-5 on TPM", code="rate_limit_exceeded"),
        ContextTooLong,
        OPENAI,
    ),
    _error_response(
        "OpenAI", 429, _error_object("insufficient_quota", "You exceeded your current quota"), QuotaExhausted, OPENAI
    ),
    _error_response("OpenAI", 503, _error_object("server_error", "The engine is overloaded"), Overloaded, OPENAI),
    _error_in_reply(
        "OpenAI",
        "`response.failed` with `rate_limit_exceeded`",
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded"}}},
        RateLimited,
        (OpenAIResponses,),
        "rate_limit",
    ),
    _error_in_reply(
        "OpenAI",
        "`error` with `context_length_exceeded`",
        {"type": "error", "code": "context_length_exceeded", "message": "too long"},
        ContextTooLong,
        (OpenAIResponses,),
        "context_too_long",
    ),
    _error_response(
        "Anthropic",
        400,
        _error_object("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ContextTooLong,
        MESSAGES,
    ),
    _error_response(
        "Anthropic",
        400,
        _error_object("invalid_request_error", "input length and `max_tokens` exceed context limit"),
        ContextTooLong,
        MESSAGES,
    ),
    _error_response(
        "Anthropic",
        400,
        _error_object("invalid_request_error", "Your credit balance is too low"),
        QuotaExhausted,
        MESSAGES,
    ),
    _error_response(
        "Anthropic",
        400,
        _error_object("invalid_request_error", "Output blocked by content filtering policy"),
        ContentRefused,
        MESSAGES,
    ),
    _error_response(
        "Anthropic", 400, _error_object("invalid_request_error", "messages: field required"), BadRequest, MESSAGES
    ),
    _error_response("Anthropic", 401, _error_object("authentication_error", "invalid x-api-key"), BadKey, MESSAGES),
    _error_response("Anthropic", 402, _error_object("billing_error", "payment required"), QuotaExhausted, MESSAGES),
    _error_response("Anthropic", 403, _error_object("permission_error", "not for this key"), BadKey, MESSAGES),
    _error_response("Anthropic", 404, _error_object("not_found_error", "model: claude-none"), BadModel, MESSAGES),
    _error_response(
        "Anthropic",
        413,
        _error_object("request_too_large", "Request exceeds the maximum size"),
        ContextTooLong,
        MESSAGES,
    ),
    _error_response(
        "Anthropic", 429, _error_object("rate_limit_error", "too many tokens a minute"), RateLimited, MESSAGES
    ),
    _error_response(
        "Anthropic",
        500,
        _error_object("api_error", "Internal server error"),
        TransientProviderError,
        MESSAGES,
        "server_error",
    ),
    _error_response(
        "Anthropic",
        504,
        _error_object("timeout_error", "The request took too long"),
        TransientProviderError,
        MESSAGES,
        "timeout",
    ),
    _error_response("Anthropic", 529, _error_object("overloaded_error", "Overloaded"), Overloaded, MESSAGES),
    _error_in_reply(
        "Anthropic",
        "`overloaded_error`",
        {"type": "error", "error": _error_object("overloaded_error", "Overloaded")},
        Overloaded,
        MESSAGES,
        "overloaded",
    ),
    _error_in_reply(
        "Anthropic",
        "`rate_limit_error`",
        {"type": "error", "error": _error_object("rate_limit_error", "slow")},
        RateLimited,
        MESSAGES,
        "rate_limit",
    ),
    _error_in_reply(
        "Anthropic",
        "`api_error`",
        {"type": "error", "error": _error_object("api_error", "broke")},
        TransientProviderError,
        MESSAGES,
        "server_error",
    ),
    _error_response("OpenRouter", 402, {"message": "Insufficient credits", "code": 402}, QuotaExhausted),
    _error_response(
        "OpenRouter", 403, {"message": "Input was flagged", "code": 403, "metadata": FLAGGED}, ContentRefused
    ),
    _error_response("OpenRouter", 400, {"message": "none/such is not a valid model ID", "code": 400}, BadModel),
    _error_response(
        "OpenRouter", 400, {"message": "Provider returned error", "code": 400, "metadata": UPSTREAM}, ContextTooLong
    ),
    _error_response(
        "OpenRouter",
        502,
        {"message": "Provider returned error", "code": 502},
        TransientProviderError,
        code="server_error",
    ),
    _error_in_reply(
        "OpenRouter", "code 429", {"error": {"message": "Rate limited", "code": 429}}, RateLimited, CHAT, "rate_limit"
    ),
    _error_response(
        "Ollama", 404, _error_object("not_found_error", 'model "none" not found, try pulling it first'), BadModel
    ),
    _error_response(
        "Ollama", 400, _error_object("api_error", "the input length exceeds the context length"), ContextTooLong
    ),
    _error_response(
        "llama.cpp",
        400,
        _error_object("exceed_context_size_error", "the request exceeds the available context size"),
        ContextTooLong,
    ),
    _error_response("llama.cpp", 401, _error_object("authentication_error", "Invalid API Key"), BadKey),
    _error_response("llama.cpp", 503, _error_object("unavailable_error", "Loading model"), Overloaded),
    _error_response(
        "vLLM",
        400,
        _error_object("BadRequestError", "This model's maximum context length is 4096 tokens."),
        ContextTooLong,
    ),
    _error_response("vLLM", 404, _error_object("NotFoundError", "The model `none` does not exist."), BadModel),
    _error_response(
        "LM Studio",
        400,
        "Trying to keep the first 6547 tokens. However, the model is loaded with context length of only 4096 tokens",
        ContextTooLong,
    ),
    _error_response("LM Studio", 400, "No models loaded. Please load a model first.", BadModel),
    _status_without_reason(400, BadRequest),
    _status_without_reason(401, BadKey),
    _status_without_reason(402, QuotaExhausted),
    _status_without_reason(403, BadKey),
    _status_without_reason(404, BadModel),
    _status_without_reason(408, TransientProviderError, "timeout"),
    _status_without_reason(409, TransientProviderError, "conflict"),
    _status_without_reason(413, ContextTooLong),
    _status_without_reason(422, BadRequest),
    _status_without_reason(429, RateLimited),
    _status_without_reason(500, TransientProviderError, "server_error"),
    _status_without_reason(502, TransientProviderError, "server_error"),
    _status_without_reason(503, Overloaded),
    _status_without_reason(504, TransientProviderError, "timeout"),
    _status_without_reason(522, TransientProviderError, "server_error"),
    _status_without_reason(529, Overloaded),
    _status_without_reason(307, ProviderError, "redirect"),
    _status_without_reason(418, ProviderError, "http_418"),
    ErrorCase(
        "any", "a truncated reply (the connection closes)", dropped(2), TransientProviderError, "stream_cut", APIS
    ),
    ErrorCase("any", "invalid JSON in the stream", garbage(1), TransientProviderError, "bad_stream", APIS),
    ErrorCase("any", "no answer at all (the connection closes)", _hang_up, TransientProviderError, "network", APIS),
    ErrorCase("any", "200 with a web page", html(), ProviderError, "bad_url", APIS),
    ErrorCase(
        "any", "200 without a reply", http_response(200, b'{"detail": "nothing"}'), ProviderError, "bad_reply", APIS
    ),
]
