"""Behaviour shared by the three wire protocols. Each stream ends with exactly one EndChunk or one error."""

import asyncio
import json
import time
import traceback
from dataclasses import replace

import pytest

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import (
    BadKey,
    BadRequest,
    CallChunk,
    Chunk,
    EndChunk,
    KeepAliveChunk,
    Overloaded,
    ProviderError,
    RateLimited,
    ReasoningChunk,
    ReasoningEnd,
    Request,
    TextChunk,
    TransientProviderError,
    UsageChunk,
)
from tests.fakes.models.behaviours import (
    Behaviour,
    Exchange,
    blackhole,
    calls,
    chunked,
    delta,
    dropped,
    events,
    failing,
    garbage,
    hanging,
    html,
    http_response,
    raw,
    reply,
    silent,
    sse,
    text,
    thinking,
    token,
    tokens,
)
from tests.fakes.models.event_writer import event_writer_for
from tests.providers.provider_fixture import (
    APIS,
    ENDPOINT,
    KEY,
    REQUEST,
    Api,
    collect_reply,
    collect_reply_to,
    each_api,
    open_provider,
)
from tests.waiting import at_most

DISCONNECT_LIMIT_SECONDS = at_most(0.05)
PATHS: dict[Api, str] = dict(zip(APIS, ["/chat/completions", "/responses", "/messages"], strict=True))
CALLS = [CallChunk(0, "a", "look"), CallChunk(0, arguments='{"x":1}'), CallChunk(1, "b", "see", "{}")]


@each_api
async def test_a_streamed_reply_yields_text_usage_and_one_end(api: Api) -> None:
    chunks = [TextChunk("He"), TextChunk("llo"), UsageChunk(Usage(10, 2, 4)), EndChunk("stop")]
    assert (await collect_reply_to(reply(chunks), api=api)).chunks == chunks


@each_api
async def test_parallel_calls_are_yielded_with_complete_arguments(api: Api) -> None:
    collected = await collect_reply_to(calls(2), api=api)
    chunks = [chunk for chunk in collected.chunks if isinstance(chunk, CallChunk)]
    assert len({chunk.id for chunk in chunks if chunk.id}) == 2
    for index in (0, 1):
        assert "".join(chunk.arguments for chunk in chunks if chunk.index == index) == '{"place": "here"}'
    assert collected.ends == [EndChunk("calls")]


@each_api
async def test_reasoning_is_separate_and_precedes_text_and_calls(api: Api) -> None:
    collected = await collect_reply_to(thinking(2), api=api)
    reasoning = [chunk.text for chunk in collected.chunks if isinstance(chunk, ReasoningChunk)]
    assert ("".join(reasoning), collected.text) == ("Let me look.", "I will look. ")
    kinds = [type(chunk) for chunk in collected.chunks]
    assert kinds.index(ReasoningChunk) < kinds.index(TextChunk) < kinds.index(CallChunk)


@each_api
async def test_a_complete_reply_yields_the_same_content_as_a_stream(api: Api) -> None:
    chunks = [TextChunk("hm"), *CALLS, UsageChunk(Usage(3, 4, 1)), EndChunk("calls")]
    async with open_provider(api, reply(chunks), endpoint=replace(ENDPOINT, stream=False)) as (provider, server):
        collected = await collect_reply(provider)
    assert server.requests[0].body["stream"] is False
    arguments = [
        "".join(c.arguments for c in collected.chunks if isinstance(c, CallChunk) and c.index == index)
        for index in (0, 1)
    ]
    assert (collected.text, arguments[0], arguments[1] or "{}") == ("hm", '{"x":1}', "{}")
    assert [(c.index, c.id, c.name) for c in collected.chunks if isinstance(c, CallChunk) and c.id] == [
        (0, "a", "look"),
        (1, "b", "see"),
    ]
    assert collected.chunks[-2:] == [UsageChunk(Usage(3, 4, 1)), EndChunk("calls")]


@each_api
async def test_a_complete_reply_yields_its_reasoning(api: Api) -> None:
    chunks = [ReasoningChunk("hm"), ReasoningEnd(Reasoning("hm", "sig")), TextChunk("so"), EndChunk("stop")]
    collected = await collect_reply_to(reply(chunks), replace(ENDPOINT, stream=False), api)
    assert collected.chunks[0] == ReasoningChunk("hm")
    stored = [chunk.reasoning.text for chunk in collected.chunks if isinstance(chunk, ReasoningEnd)]
    assert stored == ([] if api is APIS[0] else ["hm"])


@each_api
@pytest.mark.parametrize("reason", ["stop", "length", "refusal"])
async def test_the_end_reason_is_yielded(api: Api, reason: str) -> None:
    assert (await collect_reply_to(reply([TextChunk("so"), EndChunk(reason)]), api=api)).ends == [EndChunk(reason)]


@each_api
async def test_many_tokens_that_arrive_together_are_yielded_in_order(api: Api) -> None:
    collected = await collect_reply_to(tokens(3000), api=api)
    assert collected.text == "".join(f"tok{number} " for number in range(3000))


async def disconnect_inside_event(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.send_chunks(token(0))
    await exchange.send(chunked(b'data: {"type": "content_block_del'))
    exchange.drop()


async def end_without_end_event(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.send_chunks(token(0))
    await exchange.send(b"0\r\n\r\n")


BROKEN: list[tuple[Behaviour, type[ProviderError], str, str]] = [
    (dropped(2), TransientProviderError, "stream_cut", "tok0 tok1 "),
    (disconnect_inside_event, TransientProviderError, "stream_cut", "tok0 "),
    (end_without_end_event, TransientProviderError, "stream_cut", "tok0 "),
    (garbage(1), TransientProviderError, "bad_stream", "tok0 "),
    (raw(b"data: \xff\xfe\n\n"), TransientProviderError, "bad_stream", ""),
    (raw(b'data: "only words"\n\n'), TransientProviderError, "bad_stream", ""),
    (raw(b"data: " + b'{"a":' * 5000 + b"\n\n"), TransientProviderError, "bad_stream", ""),
    (raw(b"not an event at all\n\n"), TransientProviderError, "stream_cut", ""),
    (events([{"error": {"message": "it broke"}}]), TransientProviderError, "server_error", ""),
    (events([{"error": {"message": "it broke", "code": 429}}]), RateLimited, "rate_limit", ""),
    (events([{"type": "error", "error": {"type": "overloaded_error"}}]), Overloaded, "overloaded", ""),
    (html(), ProviderError, "bad_url", ""),
    (http_response(200, b'{"detail": "nothing here"}'), ProviderError, "bad_reply", ""),
    (http_response(200, b'{"choices": [{"mess'), TransientProviderError, "bad_stream", ""),
    (http_response(200, b""), TransientProviderError, "stream_cut", ""),
    (failing(503), Overloaded, "overloaded", ""),
]


HALF = delta(content="half")
BROKEN_CHAT: list[tuple[Behaviour, type[ProviderError], str, str]] = [
    (events([HALF], is_ended=False), TransientProviderError, "stream_cut", "half"),
    (raw(sse(HALF) + b'data: {"choices": [{"del'), TransientProviderError, "stream_cut", "half"),
    (raw(sse(HALF) + b"data: {nonsense\n\n"), TransientProviderError, "bad_stream", "half"),
    (events([HALF, {"error": {"message": "it broke"}}]), TransientProviderError, "server_error", "half"),
    (events([HALF, delta("error")]), TransientProviderError, "server_error", "half"),
    (events([{"error": {"message": "it broke", "code": "invalid_api_key"}}]), BadKey, "bad_key", ""),
    (events([{"error": "it broke"}]), TransientProviderError, "server_error", ""),
    (http_response(200, b" <html>no type", ""), ProviderError, "bad_url", ""),
    (
        http_response(200, b'{"error": {"message": "it broke", "type": "invalid_request_error"}}'),
        BadRequest,
        "bad_request",
        "",
    ),
]


@pytest.mark.parametrize(
    ("api", "behaviour", "kind", "code", "before"),
    [*((api, *row) for api in APIS for row in BROKEN), *((APIS[0], *row) for row in BROKEN_CHAT)],
)
async def test_a_broken_reply_ends_with_one_error_after_its_text(
    api: Api, behaviour: Behaviour, kind: type[ProviderError], code: str, before: str
) -> None:
    collected = await collect_reply_to(behaviour, api=api)
    assert collected.error is not None
    assert (type(collected.error), collected.error.code, collected.text) == (kind, code, before)


@each_api
async def test_a_reset_connection_ends_with_one_error_after_the_text_already_read(api: Api) -> None:
    read = asyncio.Event()

    async def reset_when_read(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_chunks(token(0))
        await read.wait()  # a reset may overtake the data that was sent before
        exchange.drop(is_reset=True)

    async with open_provider(api, reset_when_read) as (provider, _):
        stream = provider.stream(REQUEST)
        assert await anext(chunk async for chunk in stream if isinstance(chunk, TextChunk)) == TextChunk("tok0 ")
        read.set()
        with pytest.raises(TransientProviderError) as raised:
            await anext(stream)
    assert raised.value.code == "stream_cut"


@each_api
async def test_a_stream_disconnected_after_any_event_ends_with_one_error(api: Api) -> None:
    chunks = [TextChunk("a"), *CALLS]
    count = len(event_writer_for(PATHS[api]).events(chunks))

    def disconnect_after(event_count: int) -> Behaviour:
        async def play(exchange: Exchange) -> None:
            await exchange.begin()
            await exchange.send_events(*exchange.event_writer.events(chunks)[:event_count])
            exchange.drop()

        return play

    async with open_provider(api, *(disconnect_after(number) for number in range(count + 1))) as (provider, _):
        for _ in range(count + 1):
            collected = await collect_reply(provider)
            assert collected.error is not None
            assert collected.error.code == "stream_cut"


@each_api
@pytest.mark.parametrize("behaviour", [silent(), blackhole()])
async def test_a_cancel_before_the_first_token_reaches_the_server_immediately(api: Api, behaviour: Behaviour) -> None:
    async with open_provider(api, behaviour) as (provider, server):
        task = asyncio.create_task(collect_reply(provider))
        seen = await server.request(1)
        cancelled_at = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await seen.disconnected.wait()
    assert seen.disconnected_at is not None
    assert seen.disconnected_at - cancelled_at < DISCONNECT_LIMIT_SECONDS


@each_api
@pytest.mark.parametrize("behaviour", [hanging(1), tokens(100_000)])
async def test_the_server_sees_a_closed_stream_immediately(api: Api, behaviour: Behaviour) -> None:
    async with open_provider(api, behaviour, text(["next"])) as (provider, server):
        stream = provider.stream(REQUEST)
        assert await anext(stream) == TextChunk("tok0 ")
        closed_at = time.perf_counter()
        await stream.aclose()
        seen = await server.request(1)
        await seen.disconnected.wait()
        assert (await collect_reply(provider)).text == "next"
    assert seen.disconnected_at is not None
    assert seen.disconnected_at - closed_at < DISCONNECT_LIMIT_SECONDS
    assert [request.connection for request in server.requests] == [1, 2]


@each_api
async def test_the_connection_of_a_complete_reply_is_reused(api: Api) -> None:
    async with open_provider(api, text(["one"]), failing(503), calls(2), tokens(500)) as (provider, server):
        for _ in range(4):
            await collect_reply(provider)
    assert [seen.connection for seen in server.requests] == [1, 1, 1, 1]


async def echo_key(exchange: Exchange) -> None:
    headers = exchange.request.headers
    await exchange.send_error(401, f"no such key: {headers.get('x-api-key') or headers['authorization']}")


@each_api
async def test_errors_never_contain_the_key_even_if_the_server_repeats_it(api: Api) -> None:
    collected = await collect_reply_to(echo_key, api=api)
    assert collected.error is not None
    assert "[hidden]" in str(collected.error)
    assert KEY not in "".join([repr(collected.error), *traceback.format_exception(collected.error)])


@each_api
async def test_the_fake_server_rejects_an_invalid_history(api: Api) -> None:
    async with open_provider(api, text(["never"])) as (provider, _):
        collected = await collect_reply(provider, Request("", []))
    assert collected.error is not None
    assert collected.error.code == "bad_request"
    assert "is empty" in str(collected.error)


async def _send_broken_characters(exchange: Exchange) -> None:
    """Send an invalid byte and an unpaired surrogate inside the text."""
    await exchange.begin()
    chunks = [TextChunk("caf\ufffd "), TextChunk("\ufffd"), TextChunk("end"), EndChunk()]
    data = b"".join(sse(event) for event in exchange.event_writer.events(chunks))
    before, _, after = data.partition(b"\\ufffd")
    await exchange.send(chunked(before + b"\xff" + after.replace(b"\\ufffd", b"\\ud800")))
    await exchange.end()


@each_api
async def test_broken_characters_in_the_stream_are_replaced_without_a_retry(api: Api) -> None:
    async with open_provider(api, _send_broken_characters) as (provider, server):
        collected = await collect_reply(provider)
    assert collected.error is None
    assert collected.text == "caf\ufffd \ufffdend"
    assert len(server.requests) == 1


@each_api
@pytest.mark.parametrize("blank", [b"\n", b" ", b"\r\n\r\n"])
async def test_a_complete_reply_after_blank_keep_alive_lines_is_read(api: Api, blank: bytes) -> None:
    are_blanks_read = asyncio.Event()

    async def send_blanks_first(exchange: Exchange) -> None:
        await exchange.begin("application/json")
        await exchange.send(chunked(blank))
        await are_blanks_read.wait()
        reply_body = json.dumps(exchange.event_writer.complete_reply([TextChunk("late"), EndChunk()])).encode()
        await exchange.send(chunked(blank + reply_body) + b"0\r\n\r\n")

    chunks: list[Chunk] = []
    async with open_provider(api, send_blanks_first, endpoint=replace(ENDPOINT, stream=False)) as (provider, server):
        async for chunk in provider.stream(REQUEST):
            chunks.append(chunk)
            are_blanks_read.set()
    assert chunks[0] == KeepAliveChunk()
    assert TextChunk("late") in chunks
    assert len(server.requests) == 1


@each_api
@pytest.mark.parametrize("blank", [b": keep-alive\n\n", b"\n\n", b":\r\n\r\n"])
async def test_a_stream_after_keep_alive_comments_is_read(api: Api, blank: bytes) -> None:
    are_blanks_read = asyncio.Event()

    async def send_blanks_first(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(blank))
        await are_blanks_read.wait()
        await exchange.send_chunks(TextChunk("late"), EndChunk())
        await exchange.end()

    chunks: list[Chunk] = []
    async with open_provider(api, send_blanks_first) as (provider, _):
        async for chunk in provider.stream(REQUEST):
            chunks.append(chunk)
            are_blanks_read.set()
    assert chunks[0] == KeepAliveChunk()
    assert TextChunk("late") in chunks


@each_api
async def test_a_reply_of_blank_lines_alone_is_an_error(api: Api) -> None:
    collected = await collect_reply_to(http_response(200, b"\n\n \n"), replace(ENDPOINT, stream=False), api)
    assert collected.error is not None
    assert collected.error.code == "stream_cut"
