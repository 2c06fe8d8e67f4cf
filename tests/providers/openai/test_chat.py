"""Whole and broken replies of a chat completions server."""

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
    answer,
    calls,
    chunked,
    delta,
    events,
    failing,
    raw,
    text,
    tokens,
    usage,
)
from tests.fakes.models.behaviours import sse as event
from tests.fakes.models.history_rules import check_openai_chat
from tests.providers.provider_fixture import KEY, chat, hear, hear_one

NETWORK_CUT = "the connection ended in the middle of the reply"


async def test_a_streamed_reply_comes_as_text_usage_and_one_end() -> None:
    async with chat(events([delta(content="He"), delta(content="llo"), delta("stop"), usage(10, 2, 4)])) as (
        provider,
        server,
    ):
        heard = await hear(provider)
    assert heard.chunks == [TextChunk("He"), TextChunk("llo"), UsageChunk(Usage(10, 2, 4)), EndChunk("stop")]
    seen = server.requests[0]
    check_openai_chat(seen.body)
    assert (seen.path, seen.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (seen.body["model"], seen.body["stream"]) == ("fake", True)


async def test_many_tokens_that_arrive_together_all_come_out_in_order() -> None:
    heard = await hear_one(tokens(3000))
    assert heard.text == "".join(f"tok{number} " for number in range(3000))


async def test_parallel_calls_come_out_with_their_split_arguments() -> None:
    heard = await hear_one(calls(2))
    chunks = [chunk for chunk in heard.chunks if isinstance(chunk, CallChunk)]
    assert [chunk.index for chunk in chunks] == [0, 1, 0, 1, 0, 1, 0, 1]
    for index in (0, 1):
        assert "".join(chunk.arguments for chunk in chunks if chunk.index == index) == '{"place": "here"}'
    assert heard.ends == [EndChunk("calls")]


async def test_a_whole_reply_comes_as_the_same_chunks() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "hm", "reasoning_content": "think", "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    reply = {"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    endpoint = Endpoint("", "fake", KEY, stream=False)
    async with chat(answer(200, json.dumps(reply).encode()), endpoint=endpoint) as (provider, server):
        heard = await hear(provider)
    assert heard.chunks == [
        ReasoningChunk("think"),
        TextChunk("hm"),
        CallChunk(0, "c1", "look", '{"a": 1}'),
        UsageChunk(Usage(3, 4)),
        EndChunk("calls"),
    ]
    assert server.requests[0].body["stream"] is False


async def test_a_server_that_can_not_stream_is_understood() -> None:
    reply = {"choices": [{"message": {"content": "all at once"}, "finish_reason": None}]}
    heard = await hear_one(answer(200, json.dumps(reply).encode(), ""))
    assert heard.chunks == [TextChunk("all at once"), EndChunk("stop")]


async def test_an_end_without_done_is_good_once_the_finish_reason_came() -> None:
    heard = await hear_one(events([delta(content="all"), delta("stop")], is_ended=False))
    assert heard.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_drop_behind_the_finish_reason_is_a_good_end() -> None:
    heard = await hear_one(raw(event(delta(content="all")) + event(delta("length"))))
    assert heard.chunks == [TextChunk("all"), EndChunk("length")]


async def test_done_alone_is_a_good_end() -> None:
    heard = await hear_one(events([delta(content="all")]))
    assert heard.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_last_event_without_its_blank_line_counts() -> None:
    stream = event(delta(content="all")) + event(delta("stop")).rstrip()
    heard = await hear_one(answer(200, stream, "Content-Type: text/event-stream\r\n"))
    assert heard.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_server_that_never_ends_a_complete_reply_does_not_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_stream, "TAIL_SECONDS", 0.05)

    async def pings_for_ever(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.events(delta(content="all"), delta("stop"))
        while True:
            await exchange.send(chunked(b": ping\n\n"))
            await asyncio.sleep(0.01)

    heard = await hear_one(pings_for_ever)
    assert heard.chunks == [TextChunk("all"), EndChunk("stop")]


async def test_a_server_that_goes_on_after_done_is_not_heard() -> None:
    heard = await hear_one(raw(event(delta(content="all")) + b"data: [DONE]\n\n" + event(delta(content=" more"))))
    assert heard.text == "all"


async def test_a_body_that_lacks_its_last_bytes_is_a_cut_reply() -> None:
    async def play(exchange: Exchange) -> None:
        await exchange.send(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"choices": ')
        exchange.drop()

    heard = await hear_one(play)
    assert heard.error is not None
    assert heard.error.code == "stream_cut"
    assert NETWORK_CUT in str(heard.error)


async def test_an_endless_event_ends_with_an_error() -> None:
    async def endless(exchange: Exchange) -> None:
        await exchange.begin()
        while True:
            await exchange.send(chunked(b"x" * 1_000_000))

    heard = await hear_one(endless)
    assert heard.error is not None
    assert heard.error.code == "bad_stream"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_passing_error_status_may_be_tried_again(status: int) -> None:
    heard = await hear_one(failing(status, "7"))
    assert isinstance(heard.error, TransientProviderError)
    assert heard.error.retry_after == 7.0
    assert f"the server says {status}" in str(heard.error)


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "bad_request"), (401, "bad_key"), (403, "bad_key"), (404, "bad_model"), (402, "quota"), (418, "http_418")],
)
async def test_a_lasting_error_status_has_a_code_and_the_servers_words(status: int, code: str) -> None:
    heard = await hear_one(failing(status))
    assert heard.error is not None
    assert not isinstance(heard.error, TransientProviderError)
    assert heard.error.code == code
    assert f"the server says {status}" in str(heard.error)


async def test_a_redirect_is_told_and_not_followed() -> None:
    heard = await hear_one(answer(307, b"", "Location: https://elsewhere.example/v1\r\n"))
    assert heard.error is not None
    assert heard.error.code == "redirect"
    assert "https://elsewhere.example/v1" in str(heard.error)


async def test_an_error_whose_body_never_comes_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_stream, "ERROR_BODY_SECONDS", 0.05)

    async def play(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 503 X\r\nContent-Length: 99\r\n\r\nbusy")
        await asyncio.get_running_loop().create_future()

    heard = await hear_one(play)
    assert isinstance(heard.error, TransientProviderError)
    assert "503: busy" in str(heard.error)


async def test_a_server_that_is_not_there_is_a_network_error() -> None:
    async with chat(text(["never"])) as (provider, server):
        await server.stop()
        heard = await hear(provider)
    assert isinstance(heard.error, Unreachable)
    assert heard.error.code == "network"


async def test_a_server_that_hangs_up_without_an_answer_is_a_network_error() -> None:
    async def play(exchange: Exchange) -> None:
        exchange.drop()

    heard = await hear_one(play)
    assert isinstance(heard.error, TransientProviderError)


def repeats_key(status: int) -> Behaviour:
    async def play(exchange: Exchange) -> None:
        words = f"no such key: {exchange.seen.headers['authorization']}"
        headers = f"Content-Type: text/plain\r\nLocation: http://x.example/?key={KEY}\r\n"
        await exchange.answer(status, words.encode(), headers)

    return play


def repeats_key_in_stream(exchange: Exchange) -> Any:
    return events([{"error": {"message": exchange.seen.headers["authorization"]}}])(exchange)


@pytest.mark.parametrize(
    "behaviour", [repeats_key(401), repeats_key(503), repeats_key(302), repeats_key(418), repeats_key_in_stream]
)
async def test_the_key_is_in_no_error_even_if_the_server_repeats_it(behaviour: Behaviour) -> None:
    heard = await hear_one(behaviour)
    assert heard.error is not None
    assert "[hidden]" in str(heard.error)
    assert KEY not in "".join([repr(heard.error), *traceback.format_exception(heard.error)])


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("not a url", "m", KEY),
        Endpoint("ftp://127.0.0.1/v1", "m", KEY),
        Endpoint(f"http://me:{KEY}@[::1/v1", "m", KEY),
    ],
)
async def test_what_can_not_be_sent_is_a_lasting_error_without_the_key(endpoint: Endpoint) -> None:
    async with open_session() as session:
        heard = await hear(OpenAIChat(session, endpoint))
    assert heard.error is not None
    assert not isinstance(heard.error, TransientProviderError)
    assert heard.error.code == "bad_url"
    assert KEY not in "".join([repr(heard.error), *traceback.format_exception(heard.error)])


@pytest.mark.parametrize("key", [f"{KEY}\nX-Evil: 1", f"{KEY}\r", f"a\0{KEY}"])
async def test_a_key_that_would_break_the_request_is_not_sent_nor_shown(key: str) -> None:
    async with chat(text(["no"]), endpoint=Endpoint("", "fake", f"x{key}x")) as (provider, server):
        heard = await hear(provider)
    assert heard.error is not None
    assert heard.error.code == "bad_url"
    assert KEY not in "".join([repr(heard.error), *traceback.format_exception(heard.error)])
    assert server.requests == []


def test_an_endpoint_does_not_show_its_key() -> None:
    endpoint = Endpoint("http://x", "m", KEY, extra_headers={"api-key": KEY})
    assert KEY not in repr(endpoint)


async def test_extra_headers_are_sent_and_a_key_with_a_line_end_is_trimmed() -> None:
    endpoint = Endpoint("", "fake", f"{KEY}\n", extra_headers={"X-Title": "hark"})
    async with chat(text(["ok"]), endpoint=endpoint) as (provider, server):
        assert (await hear(provider)).text == "ok"
    headers = server.requests[0].headers
    assert (headers["x-title"], headers["authorization"]) == ("hark", f"Bearer {KEY}")


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with chat(text(["ok"]), endpoint=Endpoint("", "fake")) as (provider, server):
        await hear(provider)
    assert "authorization" not in server.requests[0].headers
