"""What the three wire protocols have in common: one stream ends in exactly one end or one error."""

import asyncio
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
    EndChunk,
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
    answer,
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
    raw,
    reply,
    silent,
    sse,
    text,
    thinking,
    token,
    tokens,
)
from tests.fakes.models.event_writer import speaker_for
from tests.providers.provider_fixture import APIS, ENDPOINT, KEY, REQUEST, Api, each_api, hear, hear_one, talk
from tests.waiting import at_most

SEEN_WITHIN_SECONDS = at_most(0.05)
PATHS: dict[Api, str] = dict(zip(APIS, ["/chat/completions", "/responses", "/messages"], strict=True))
CALLS = [CallChunk(0, "a", "look"), CallChunk(0, arguments='{"x":1}'), CallChunk(1, "b", "see", "{}")]


@each_api
async def test_a_streamed_reply_comes_as_text_usage_and_one_end(api: Api) -> None:
    said = [TextChunk("He"), TextChunk("llo"), UsageChunk(Usage(10, 2, 4)), EndChunk("stop")]
    assert (await hear_one(reply(said), api=api)).chunks == said


@each_api
async def test_parallel_calls_come_with_their_arguments_whole(api: Api) -> None:
    heard = await hear_one(calls(2), api=api)
    chunks = [chunk for chunk in heard.chunks if isinstance(chunk, CallChunk)]
    assert len({chunk.id for chunk in chunks if chunk.id}) == 2
    for index in (0, 1):
        assert "".join(chunk.arguments for chunk in chunks if chunk.index == index) == '{"place": "here"}'
    assert heard.ends == [EndChunk("calls")]


@each_api
async def test_thinking_comes_apart_and_before_what_it_led_to(api: Api) -> None:
    heard = await hear_one(thinking(2), api=api)
    thoughts = [chunk.text for chunk in heard.chunks if isinstance(chunk, ReasoningChunk)]
    assert ("".join(thoughts), heard.text) == ("Let me look.", "I will look. ")
    kinds = [type(chunk) for chunk in heard.chunks]
    assert kinds.index(ReasoningChunk) < kinds.index(TextChunk) < kinds.index(CallChunk)


@each_api
async def test_a_whole_reply_says_the_same_as_a_streamed_one(api: Api) -> None:
    said = [TextChunk("hm"), *CALLS, UsageChunk(Usage(3, 4, 1)), EndChunk("calls")]
    async with talk(api, reply(said), endpoint=replace(ENDPOINT, stream=False)) as (provider, server):
        heard = await hear(provider)
    assert server.requests[0].body["stream"] is False
    arguments = [
        "".join(c.arguments for c in heard.chunks if isinstance(c, CallChunk) and c.index == index) for index in (0, 1)
    ]
    assert (heard.text, arguments[0], arguments[1] or "{}") == ("hm", '{"x":1}', "{}")
    assert [(c.index, c.id, c.name) for c in heard.chunks if isinstance(c, CallChunk) and c.id] == [
        (0, "a", "look"),
        (1, "b", "see"),
    ]
    assert heard.chunks[-2:] == [UsageChunk(Usage(3, 4, 1)), EndChunk("calls")]


@each_api
async def test_a_whole_reply_keeps_its_thinking(api: Api) -> None:
    said = [ReasoningChunk("hm"), ReasoningEnd(Reasoning("hm", "sig")), TextChunk("so"), EndChunk("stop")]
    heard = await hear_one(reply(said), replace(ENDPOINT, stream=False), api)
    assert heard.chunks[0] == ReasoningChunk("hm")
    kept = [chunk.reasoning.text for chunk in heard.chunks if isinstance(chunk, ReasoningEnd)]
    assert kept == ([] if api is APIS[0] else ["hm"])


@each_api
@pytest.mark.parametrize("reason", ["stop", "length", "refusal"])
async def test_the_reason_of_the_end_is_told(api: Api, reason: str) -> None:
    assert (await hear_one(reply([TextChunk("so"), EndChunk(reason)]), api=api)).ends == [EndChunk(reason)]


@each_api
async def test_many_tokens_that_arrive_together_all_come_out_in_order(api: Api) -> None:
    heard = await hear_one(tokens(3000), api=api)
    assert heard.text == "".join(f"tok{number} " for number in range(3000))


async def cut_in_an_event(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.say(token(0))
    await exchange.send(chunked(b'data: {"type": "content_block_del'))
    exchange.drop()


async def no_end(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.say(token(0))
    await exchange.send(b"0\r\n\r\n")


BROKEN: list[tuple[Behaviour, type[ProviderError], str, str]] = [
    (dropped(2), TransientProviderError, "stream_cut", "tok0 tok1 "),
    (cut_in_an_event, TransientProviderError, "stream_cut", "tok0 "),
    (no_end, TransientProviderError, "stream_cut", "tok0 "),
    (garbage(1), TransientProviderError, "bad_stream", "tok0 "),
    (raw(b"data: \xff\xfe\n\n"), TransientProviderError, "bad_stream", ""),
    (raw(b'data: "only words"\n\n'), TransientProviderError, "bad_stream", ""),
    (raw(b"data: " + b'{"a":' * 5000 + b"\n\n"), TransientProviderError, "bad_stream", ""),
    (raw(b"not an event at all\n\n"), TransientProviderError, "stream_cut", ""),
    (events([{"error": {"message": "it broke"}}]), TransientProviderError, "server_error", ""),
    (events([{"error": {"message": "it broke", "code": 429}}]), RateLimited, "rate_limit", ""),
    (events([{"type": "error", "error": {"type": "overloaded_error"}}]), Overloaded, "overloaded", ""),
    (html(), ProviderError, "bad_url", ""),
    (answer(200, b'{"detail": "nothing here"}'), ProviderError, "bad_reply", ""),
    (answer(200, b'{"choices": [{"mess'), TransientProviderError, "bad_stream", ""),
    (answer(200, b""), TransientProviderError, "stream_cut", ""),
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
    (answer(200, b" <html>no type", ""), ProviderError, "bad_url", ""),
    (
        answer(200, b'{"error": {"message": "it broke", "type": "invalid_request_error"}}'),
        BadRequest,
        "bad_request",
        "",
    ),
]


@pytest.mark.parametrize(
    ("api", "behaviour", "kind", "code", "before"),
    [*((api, *row) for api in APIS for row in BROKEN), *((APIS[0], *row) for row in BROKEN_CHAT)],
)
async def test_a_broken_reply_is_one_error_after_the_text_that_came_before(
    api: Api, behaviour: Behaviour, kind: type[ProviderError], code: str, before: str
) -> None:
    heard = await hear_one(behaviour, api=api)
    assert heard.error is not None
    assert (type(heard.error), heard.error.code, heard.text) == (kind, code, before)


@each_api
async def test_a_reset_connection_is_one_error_after_the_text_that_was_read(api: Api) -> None:
    read = asyncio.Event()

    async def reset_when_read(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(token(0))
        await read.wait()  # a reset may overtake what was sent before it
        exchange.drop(is_reset=True)

    async with talk(api, reset_when_read) as (provider, _):
        stream = provider.stream(REQUEST)
        assert await anext(chunk async for chunk in stream if isinstance(chunk, TextChunk)) == TextChunk("tok0 ")
        read.set()
        with pytest.raises(TransientProviderError) as raised:
            await anext(stream)
    assert raised.value.code == "stream_cut"


@each_api
async def test_a_stream_that_is_cut_at_any_event_ends_in_one_error(api: Api) -> None:
    said = [TextChunk("a"), *CALLS]
    count = len(speaker_for(PATHS[api]).events(said))

    def cut_behind(number: int) -> Behaviour:
        async def play(exchange: Exchange) -> None:
            await exchange.begin()
            await exchange.events(*exchange.speaker.events(said)[:number])
            exchange.drop()

        return play

    async with talk(api, *(cut_behind(number) for number in range(count + 1))) as (provider, _):
        for _ in range(count + 1):
            heard = await hear(provider)
            assert heard.error is not None
            assert heard.error.code == "stream_cut"


@each_api
@pytest.mark.parametrize("behaviour", [silent(), blackhole()])
async def test_a_cancel_before_the_first_token_is_seen_by_the_server_at_once(api: Api, behaviour: Behaviour) -> None:
    async with talk(api, behaviour) as (provider, server):
        task = asyncio.create_task(hear(provider))
        seen = await server.request(1)
        at = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await seen.left.wait()
    assert seen.left_at is not None
    assert seen.left_at - at < SEEN_WITHIN_SECONDS


@each_api
@pytest.mark.parametrize("behaviour", [hanging(1), tokens(100_000)])
async def test_a_close_in_mid_stream_is_seen_by_the_server_at_once(api: Api, behaviour: Behaviour) -> None:
    async with talk(api, behaviour, text(["next"])) as (provider, server):
        stream = provider.stream(REQUEST)
        assert await anext(stream) == TextChunk("tok0 ")
        at = time.perf_counter()
        await stream.aclose()
        seen = await server.request(1)
        await seen.left.wait()
        assert (await hear(provider)).text == "next"
    assert seen.left_at is not None
    assert seen.left_at - at < SEEN_WITHIN_SECONDS
    assert [request.connection for request in server.requests] == [1, 2]


@each_api
async def test_the_connection_of_a_finished_reply_is_used_again(api: Api) -> None:
    async with talk(api, text(["one"]), failing(503), calls(2), tokens(500)) as (provider, server):
        for _ in range(4):
            await hear(provider)
    assert [seen.connection for seen in server.requests] == [1, 1, 1, 1]


async def repeats_key(exchange: Exchange) -> None:
    headers = exchange.seen.headers
    await exchange.refuse(401, f"no such key: {headers.get('x-api-key') or headers['authorization']}")


@each_api
async def test_the_key_is_in_no_error_even_if_the_server_repeats_it(api: Api) -> None:
    heard = await hear_one(repeats_key, api=api)
    assert heard.error is not None
    assert "[hidden]" in str(heard.error)
    assert KEY not in "".join([repr(heard.error), *traceback.format_exception(heard.error)])


@each_api
async def test_a_history_that_the_vendor_would_refuse_is_refused_by_the_strict_server(api: Api) -> None:
    async with talk(api, text(["never"])) as (provider, _):
        heard = await hear(provider, Request("", []))
    assert heard.error is not None
    assert heard.error.code == "bad_request"
    assert "is empty" in str(heard.error)


async def _play_broken(exchange: Exchange) -> None:
    """A bad byte, and half a surrogate pair, where good characters would be."""
    await exchange.begin()
    chunks = [TextChunk("caf\ufffd "), TextChunk("\ufffd"), TextChunk("end"), EndChunk()]
    data = b"".join(sse(event) for event in exchange.speaker.events(chunks))
    before, _, behind = data.partition(b"\\ufffd")
    await exchange.send(chunked(before + b"\xff" + behind.replace(b"\\ufffd", b"\\ud800")))
    await exchange.end()


@each_api
async def test_a_broken_character_in_the_stream_is_replaced_and_nothing_is_asked_again(api: Api) -> None:
    async with talk(api, _play_broken) as (provider, server):
        heard = await hear(provider)
    assert heard.error is None
    assert heard.text == "caf\ufffd \ufffdend"
    assert len(server.requests) == 1
