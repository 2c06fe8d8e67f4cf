"""What servers say when they fail, as they say it, and the error that each must become."""

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
from tests.fakes.models.behaviours import Behaviour, Exchange, answer, dropped, events, garbage, html
from tests.providers.provider_fixture import APIS, Api


@dataclass(frozen=True)
class Case:
    """A failure of one server: what it does, in words and in fact, and what we make of it."""

    server: str
    said: str
    behaviour: Behaviour
    error: type[ProviderError]
    code: str
    apis: tuple[Api, ...]


CHAT: tuple[Api, ...] = (OpenAIChat,)
OPENAI: tuple[Api, ...] = (OpenAIChat, OpenAIResponses)
MESSAGES: tuple[Api, ...] = (Anthropic,)


def _answered(
    server: str, status: int, error: Any, kind: type[ProviderError], apis: tuple[Api, ...] = CHAT, code: str = ""
) -> Case:
    """An error status, with this error in its body."""
    fields: dict[str, Any] = {"message": error} if isinstance(error, str) else error
    names: list[str] = [f"`{fields[name]}`" for name in ("code", "type") if isinstance(fields.get(name), str)]
    said = " ".join([str(status), *names, f"“{fields['message']}”"])
    body: dict[str, Any] = {"type": "error", "error": error} if apis is MESSAGES else {"error": error}
    return Case(server, said, answer(status, json.dumps(body).encode()), kind, code or kind.usual_code, apis)


def _bare(status: int, kind: type[ProviderError], code: str = "") -> Case:
    return Case("any", f"{status}, without a known reason", answer(status, b"?"), kind, code or kind.usual_code, APIS)


def _inside(server: str, said: str, event: Any, kind: type[ProviderError], apis: tuple[Api, ...], code: str) -> Case:
    return Case(server, f"inside a reply: {said}", events([event]), kind, code, apis)


async def _hangs_up(exchange: Exchange) -> None:
    exchange.drop()


def _error(name: str, words: str, **more: Any) -> dict[str, Any]:
    return {"type": name, "message": words, **more}


def _overrun(name: str) -> dict[str, Any]:
    return _error(name, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded")


FLAGGED = {"reasons": ["violence"], "flagged_input": "..."}
UPSTREAM = {"raw": '{"error": {"message": "maximum context length is 8192 tokens"}}', "provider_name": "One"}
LIMITED = answer(429, b'{"error": {"message": "Rate limit reached"}}', "Retry-After: 7\r\n")

CASES: list[Case] = [
    Case("any", "429 with `Retry-After`", LIMITED, RateLimited, "rate_limit", APIS),
    _answered("OpenAI", 400, _overrun("invalid_request_error"), ContextTooLong, OPENAI),
    _answered(
        "OpenAI", 401, _error("invalid_request_error", "Incorrect API key", code="invalid_api_key"), BadKey, OPENAI
    ),
    _answered(
        "OpenAI", 404, _error("invalid_request_error", "No such model", code="model_not_found"), BadModel, OPENAI
    ),
    _answered("OpenAI", 400, _error("invalid_request_error", "Unknown parameter"), BadRequest, OPENAI),
    _answered(
        "OpenAI",
        400,
        _error("invalid_request_error", "Not allowed", code="content_policy_violation"),
        ContentRefused,
        OPENAI,
    ),
    _answered("OpenAI", 429, _error("tokens", "Rate limit reached", code="rate_limit_exceeded"), RateLimited, OPENAI),
    _answered(
        "OpenAI",
        429,
        _error("tokens", "Request too large for gpt-5 on TPM", code="rate_limit_exceeded"),
        ContextTooLong,
        OPENAI,
    ),
    _answered("OpenAI", 429, _error("insufficient_quota", "You exceeded your current quota"), QuotaExhausted, OPENAI),
    _answered("OpenAI", 503, _error("server_error", "The engine is overloaded"), Overloaded, OPENAI),
    _inside(
        "OpenAI",
        "`response.failed` with `rate_limit_exceeded`",
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded"}}},
        RateLimited,
        (OpenAIResponses,),
        "rate_limit",
    ),
    _inside(
        "OpenAI",
        "`error` with `context_length_exceeded`",
        {"type": "error", "code": "context_length_exceeded", "message": "too long"},
        ContextTooLong,
        (OpenAIResponses,),
        "context_too_long",
    ),
    _answered(
        "Anthropic",
        400,
        _error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ContextTooLong,
        MESSAGES,
    ),
    _answered(
        "Anthropic",
        400,
        _error("invalid_request_error", "input length and `max_tokens` exceed context limit"),
        ContextTooLong,
        MESSAGES,
    ),
    _answered(
        "Anthropic", 400, _error("invalid_request_error", "Your credit balance is too low"), QuotaExhausted, MESSAGES
    ),
    _answered(
        "Anthropic",
        400,
        _error("invalid_request_error", "Output blocked by content filtering policy"),
        ContentRefused,
        MESSAGES,
    ),
    _answered("Anthropic", 400, _error("invalid_request_error", "messages: field required"), BadRequest, MESSAGES),
    _answered("Anthropic", 401, _error("authentication_error", "invalid x-api-key"), BadKey, MESSAGES),
    _answered("Anthropic", 402, _error("billing_error", "payment required"), QuotaExhausted, MESSAGES),
    _answered("Anthropic", 403, _error("permission_error", "not for this key"), BadKey, MESSAGES),
    _answered("Anthropic", 404, _error("not_found_error", "model: claude-none"), BadModel, MESSAGES),
    _answered(
        "Anthropic", 413, _error("request_too_large", "Request exceeds the maximum size"), ContextTooLong, MESSAGES
    ),
    _answered("Anthropic", 429, _error("rate_limit_error", "too many tokens a minute"), RateLimited, MESSAGES),
    _answered(
        "Anthropic", 500, _error("api_error", "Internal server error"), TransientProviderError, MESSAGES, "server_error"
    ),
    _answered(
        "Anthropic",
        504,
        _error("timeout_error", "The request took too long"),
        TransientProviderError,
        MESSAGES,
        "timeout",
    ),
    _answered("Anthropic", 529, _error("overloaded_error", "Overloaded"), Overloaded, MESSAGES),
    _inside(
        "Anthropic",
        "`overloaded_error`",
        {"type": "error", "error": _error("overloaded_error", "Overloaded")},
        Overloaded,
        MESSAGES,
        "overloaded",
    ),
    _inside(
        "Anthropic",
        "`rate_limit_error`",
        {"type": "error", "error": _error("rate_limit_error", "slow")},
        RateLimited,
        MESSAGES,
        "rate_limit",
    ),
    _inside(
        "Anthropic",
        "`api_error`",
        {"type": "error", "error": _error("api_error", "broke")},
        TransientProviderError,
        MESSAGES,
        "server_error",
    ),
    _answered("OpenRouter", 402, {"message": "Insufficient credits", "code": 402}, QuotaExhausted),
    _answered("OpenRouter", 403, {"message": "Input was flagged", "code": 403, "metadata": FLAGGED}, ContentRefused),
    _answered("OpenRouter", 400, {"message": "none/such is not a valid model ID", "code": 400}, BadModel),
    _answered(
        "OpenRouter", 400, {"message": "Provider returned error", "code": 400, "metadata": UPSTREAM}, ContextTooLong
    ),
    _answered(
        "OpenRouter",
        502,
        {"message": "Provider returned error", "code": 502},
        TransientProviderError,
        code="server_error",
    ),
    _inside(
        "OpenRouter", "code 429", {"error": {"message": "Rate limited", "code": 429}}, RateLimited, CHAT, "rate_limit"
    ),
    _answered("Ollama", 404, _error("not_found_error", 'model "none" not found, try pulling it first'), BadModel),
    _answered("Ollama", 400, _error("api_error", "the input length exceeds the context length"), ContextTooLong),
    _answered(
        "llama.cpp",
        400,
        _error("exceed_context_size_error", "the request exceeds the available context size"),
        ContextTooLong,
    ),
    _answered("llama.cpp", 401, _error("authentication_error", "Invalid API Key"), BadKey),
    _answered("llama.cpp", 503, _error("unavailable_error", "Loading model"), Overloaded),
    _answered(
        "vLLM", 400, _error("BadRequestError", "This model's maximum context length is 4096 tokens."), ContextTooLong
    ),
    _answered("vLLM", 404, _error("NotFoundError", "The model `none` does not exist."), BadModel),
    _answered(
        "LM Studio",
        400,
        "Trying to keep the first 6547 tokens. However, the model is loaded with context length of only 4096 tokens",
        ContextTooLong,
    ),
    _answered("LM Studio", 400, "No models loaded. Please load a model first.", BadModel),
    _bare(400, BadRequest),
    _bare(401, BadKey),
    _bare(402, QuotaExhausted),
    _bare(403, BadKey),
    _bare(404, BadModel),
    _bare(408, TransientProviderError, "timeout"),
    _bare(409, TransientProviderError, "conflict"),
    _bare(413, ContextTooLong),
    _bare(422, BadRequest),
    _bare(429, RateLimited),
    _bare(500, TransientProviderError, "server_error"),
    _bare(502, TransientProviderError, "server_error"),
    _bare(503, Overloaded),
    _bare(504, TransientProviderError, "timeout"),
    _bare(522, TransientProviderError, "server_error"),
    _bare(529, Overloaded),
    _bare(307, ProviderError, "redirect"),
    _bare(418, ProviderError, "http_418"),
    Case(
        "any", "a reply that breaks off (the connection closes)", dropped(2), TransientProviderError, "stream_cut", APIS
    ),
    Case("any", "a reply with something that is no JSON", garbage(1), TransientProviderError, "bad_stream", APIS),
    Case("any", "no answer at all (the connection closes)", _hangs_up, TransientProviderError, "network", APIS),
    Case("any", "200 with a web page", html(), ProviderError, "bad_url", APIS),
    Case("any", "200 with no reply in it", answer(200, b'{"detail": "nothing"}'), ProviderError, "bad_reply", APIS),
]
