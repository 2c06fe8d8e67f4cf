"""Complete and broken replies from a Chat Completions server."""

import asyncio
import json
import traceback
from typing import Any

import pytest

from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    CallChunk,
    EndChunk,
    ReasoningChunk,
    TextChunk,
    TransientProviderError,
    Unreachable,
    UsageChunk,
)
from hark.providers import reply_stream
from hark.providers.connections import open_session
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import OpenAIChat
from tests.fakes.models.behaviours import (
    Behaviour,
    Exchange,
    calls,
    chunked,
    delta,
    events,
    failing,
    http_response,
    raw,
    text,
    tokens,
    usage,
)
from tests.fakes.models.behaviours import sse as event
from tests.fakes.models.history_rules import check_openai_chat
from tests.providers.provider_fixture import KEY, collect_reply, collect_reply_to, open_chat_provider

CONNECTION_LOST = "The connection was lost in the middle of the reply"


async def test_a_streamed_reply_yields_text_usage_and_one_end() -> None:
    async with open_chat_provider(
        events([delta(content="He"), delta(content="llo"), delta("stop"), usage(10, 2, 4)])
    ) as (
        provider,
        server,
    ):
        collected = await collect_reply(provider)
    assert collected.chunks == [TextChunk("He"), TextChunk("llo"), UsageChunk(Usage(10, 2, 4)), EndChunk("stop")]
    seen = server.requests[0]
    check_openai_chat(seen.body)
    assert (seen.path, seen.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (seen.body["model"], seen.body["stream"]) == ("fake", True)


async def test_many_tokens_that_arrive_together_are_yielded_in_order() -> None:
    collected = await collect_reply_to(tokens(3000))
    assert collected.text == "".join(f"tok{number} " for number in range(3000))


async def test_parallel_calls_are_yielded_with_their_split_arguments() -> None:
    collected = await collect_reply_to(calls(2))
    chunks = [chunk for chunk in collected.chunks if isinstance(chunk, CallChunk)]
    assert [chunk.index for chunk in chunks] == [0, 1, 0, 1, 0, 1, 0, 1]
    for index in (0, 1):
        assert "".join(chunk.arguments for chunk in chunks if chunk.index == index) == '{"place": "here"}'
    assert collected.ends == [EndChunk("calls")]


async def test_a_complete_reply_yields_the_same_chunks_as_a_stream() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "hm", "reasoning_content": "think", "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    reply = {"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    endpoint = Endpoint("", "fake", KEY, stream=False)
    behaviour = http_response(200, json.dumps(reply).encode())
    async with open_chat_provider(behaviour, endpoint=endpoint) as (provider, server):
        collected = await collect_reply(provider)
    assert collected.chunks == [
        ReasoningChunk("think"),
        TextChunk("hm"),
        CallChunk(0, "c1", "look", '{"a": 1}'),
        UsageChunk(Usage(3, 4)),
        EndChunk("calls"),
    ]
    assert server.requests[0].body["stream"] is False


async def test_a_reply_from_a_server_without_streaming_is_parsed() -> None:
    reply = {"choices": [{"message": {"content": "all at once"}, "finish_reason": None}]}
    collected = await collect_reply_to(http_response(200, json.dumps(reply).encode(), ""))
    assert collected.chunks == [TextChunk("all at once"), EndChunk("stop")]


async def test_a_stream_with_a_finish_reason_ends_normally_without_a_done_event() -> None:
    collected = await collect_reply_to(events([delta(content="all"), delta("stop")], is_ended=False))
    assert collected.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_reply_is_complete_when_the_connection_is_lost_after_the_finish_reason() -> None:
    collected = await collect_reply_to(raw(event(delta(content="all")) + event(delta("length"))))
    assert collected.chunks == [TextChunk("all"), EndChunk("length")]


async def test_a_reply_with_a_done_event_but_no_finish_reason_is_complete() -> None:
    collected = await collect_reply_to(events([delta(content="all")]))
    assert collected.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_last_event_without_its_terminating_empty_line_is_parsed() -> None:
    stream = event(delta(content="all")) + event(delta("stop")).rstrip()
    collected = await collect_reply_to(http_response(200, stream, "Content-Type: text/event-stream\r\n"))
    assert collected.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_complete_reply_is_not_delayed_when_the_server_keeps_the_stream_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reply_stream, "TAIL_SECONDS", 0.05)

    async def send_pings_forever(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_events(delta(content="all"), delta("stop"))
        while True:
            await exchange.send(chunked(b": ping\n\n"))
            await asyncio.sleep(0.01)

    collected = await collect_reply_to(send_pings_forever)
    assert collected.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_events_after_the_done_event_are_ignored() -> None:
    collected = await collect_reply_to(
        raw(event(delta(content="all")) + b"data: [DONE]\n\n" + event(delta(content=" more")))
    )
    assert collected.text == "all"


async def test_a_truncated_body_is_reported_as_a_lost_connection() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.send(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"choices": ')
        exchange.drop()

    collected = await collect_reply_to(play)
    assert collected.error is not None
    assert collected.error.code == "stream_cut"
    assert CONNECTION_LOST in str(collected.error)


async def test_an_endless_event_is_reported_as_an_invalid_stream() -> None:
    async def send_endless_event(exchange: Exchange) -> None:
        await exchange.begin()
        while True:
            await exchange.send(chunked(b"x" * 1_000_000))

    collected = await collect_reply_to(send_endless_event)
    assert collected.error is not None
    assert collected.error.code == "bad_stream"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_transient_error_status_is_reported_as_retryable(status: int) -> None:
    collected = await collect_reply_to(failing(status, "7"))
    assert isinstance(collected.error, TransientProviderError)
    assert collected.error.retry_after == 7.0
    assert f"the server says {status}" in str(collected.error)


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "bad_request"), (401, "bad_key"), (403, "bad_key"), (404, "bad_model"), (402, "quota"), (418, "http_418")],
)
async def test_a_permanent_error_contains_a_code_and_the_servers_message(status: int, code: str) -> None:
    collected = await collect_reply_to(failing(status))
    assert collected.error is not None
    assert not isinstance(collected.error, TransientProviderError)
    assert collected.error.code == code
    assert f"the server says {status}" in str(collected.error)


async def test_a_redirect_is_reported_and_not_followed() -> None:
    collected = await collect_reply_to(http_response(307, b"", "Location: https://elsewhere.example/v1\r\n"))
    assert collected.error is not None
    assert collected.error.code == "redirect"
    assert "https://elsewhere.example/v1" in str(collected.error)


async def test_an_error_is_reported_even_if_its_body_never_arrives_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_stream, "ERROR_BODY_SECONDS", 0.05)

    async def play(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 503 X\r\nContent-Length: 99\r\n\r\nbusy")
        await asyncio.get_running_loop().create_future()

    collected = await collect_reply_to(play)
    assert isinstance(collected.error, TransientProviderError)
    assert "503: busy" in str(collected.error)


async def test_an_unreachable_server_is_reported_as_a_network_error() -> None:
    async with open_chat_provider(text(["never"])) as (provider, server):
        await server.stop()
        collected = await collect_reply(provider)
    assert isinstance(collected.error, Unreachable)
    assert collected.error.code == "network"


async def test_a_connection_closed_without_a_response_is_reported_as_a_transient_error() -> None:
    async def play(exchange: Exchange) -> None:
        exchange.drop()

    collected = await collect_reply_to(play)
    assert isinstance(collected.error, TransientProviderError)


def echo_key(status: int) -> Behaviour:
    async def play(exchange: Exchange) -> None:
        body = f"no such key: {exchange.request.headers['authorization']}"
        headers = f"Content-Type: text/plain\r\nLocation: http://x.example/?key={KEY}\r\n"
        await exchange.respond(status, body.encode(), headers)

    return play


def echo_key_in_stream(exchange: Exchange) -> Any:
    return events([{"error": {"message": exchange.request.headers["authorization"]}}])(exchange)


@pytest.mark.parametrize("behaviour", [echo_key(401), echo_key(503), echo_key(302), echo_key(418), echo_key_in_stream])
async def test_errors_never_contain_the_key_even_if_the_server_repeats_it(behaviour: Behaviour) -> None:
    collected = await collect_reply_to(behaviour)
    assert collected.error is not None
    assert "[hidden]" in str(collected.error)
    assert KEY not in "".join([repr(collected.error), *traceback.format_exception(collected.error)])


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("not a url", "m", KEY),
        Endpoint("ftp://127.0.0.1/v1", "m", KEY),
        Endpoint(f"http://me:{KEY}@[::1/v1", "m", KEY),
    ],
)
async def test_an_invalid_base_url_is_reported_as_a_permanent_error_without_the_key(endpoint: Endpoint) -> None:
    async with open_session() as session:
        collected = await collect_reply(OpenAIChat(session, endpoint))
    assert collected.error is not None
    assert not isinstance(collected.error, TransientProviderError)
    assert collected.error.code == "bad_url"
    assert KEY not in "".join([repr(collected.error), *traceback.format_exception(collected.error)])


@pytest.mark.parametrize("key", [f"{KEY}\nX-Evil: 1", f"{KEY}\r", f"a\0{KEY}"])
async def test_a_key_with_control_characters_is_neither_sent_nor_shown(key: str) -> None:
    async with open_chat_provider(text(["no"]), endpoint=Endpoint("", "fake", f"x{key}x")) as (provider, server):
        collected = await collect_reply(provider)
    assert collected.error is not None
    assert collected.error.code == "bad_url"
    assert KEY not in "".join([repr(collected.error), *traceback.format_exception(collected.error)])
    assert server.requests == []


def test_the_repr_of_an_endpoint_does_not_contain_its_key() -> None:
    endpoint = Endpoint("http://x", "m", KEY, extra_headers={"api-key": KEY})
    assert KEY not in repr(endpoint)


async def test_extra_headers_are_sent_and_whitespace_around_the_key_is_stripped() -> None:
    endpoint = Endpoint("", "fake", f"{KEY}\n", extra_headers={"X-Title": "hark"})
    async with open_chat_provider(text(["ok"]), endpoint=endpoint) as (provider, server):
        assert (await collect_reply(provider)).text == "ok"
    headers = server.requests[0].headers
    assert (headers["x-title"], headers["authorization"]) == ("hark", f"Bearer {KEY}")


async def test_without_a_key_no_authorization_header_is_sent() -> None:
    async with open_chat_provider(text(["ok"]), endpoint=Endpoint("", "fake")) as (provider, server):
        await collect_reply(provider)
    assert "authorization" not in server.requests[0].headers
