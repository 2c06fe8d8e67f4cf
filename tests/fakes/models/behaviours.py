"""The behaviours of a fake model server, the same for all three APIs."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hark.protocol.messages import Reasoning
from hark.protocol.outcomes import Usage
from hark.protocol.provider import CallChunk, Chunk, EndChunk, ReasoningChunk, ReasoningEnd, TextChunk, UsageChunk
from tests.fakes.models.chat_events import call as call
from tests.fakes.models.chat_events import call_part as call_part
from tests.fakes.models.chat_events import delta as delta
from tests.fakes.models.chat_events import usage as usage
from tests.fakes.models.exchange import Exchange as Exchange
from tests.fakes.models.exchange import ReceivedRequest as ReceivedRequest
from tests.fakes.models.exchange import chunked as chunked
from tests.fakes.models.exchange import sse as sse

BATCH = 64  # chunks per write if no rate is given

Behaviour = Callable[[Exchange], Coroutine[Any, Any, None]]


def reply(chunks: Sequence[Chunk]) -> Behaviour:
    """Return a behaviour that sends a complete reply: one write per chunk, or one body if the request does not
    stream.
    """

    async def play(exchange: Exchange) -> None:
        if exchange.request.body.get("stream") is False:
            await exchange.send_complete_reply(chunks)
            return
        await exchange.begin()
        for chunk in chunks:
            await exchange.send_chunks(chunk)
        await exchange.end()

    return play


def text(pieces: Sequence[str]) -> Behaviour:
    """Return a behaviour that sends a complete reply with these pieces of text."""
    return reply([*(TextChunk(word) for word in pieces), UsageChunk(Usage(10, len(pieces))), EndChunk()])


def token(number: int) -> TextChunk:
    return TextChunk(f"tok{number} ")


def tokens(count: int, rate: float = 0.0) -> Behaviour:
    """Return a behaviour that sends a complete reply of `count` tokens, `rate` per second (0: unlimited)."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        if rate:
            start = time.perf_counter()
            for number in range(count):
                await exchange.send_chunks(token(number))
                await asyncio.sleep(max(0.0, start + (number + 1) / rate - time.perf_counter()))
        else:
            for first in range(0, count, BATCH):
                await exchange.send_chunks(*(token(number) for number in range(first, min(first + BATCH, count))))
        await exchange.send_chunks(UsageChunk(Usage(10, count)), EndChunk())
        await exchange.end()

    return play


def events(all_events: Sequence[Any], is_ended: bool = True) -> Behaviour:
    """Return a behaviour that sends these events, then the API's terminator if `is_ended`, and ends the body."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        for event in all_events:
            await exchange.send_events(event)
        await (exchange.end() if is_ended else exchange.send(b"0\r\n\r\n"))

    return play


def call_chunks(count: int) -> list[CallChunk]:
    """Return the chunks of parallel calls to `look`, with their arguments interleaved in pieces."""
    opening = [CallChunk(n, f"call_{time.monotonic_ns()}_{n}", "look") for n in range(count)]
    pieces = ['{"pla', 'ce": ', '"here"}']
    return [*opening, *(CallChunk(n, arguments=piece) for piece in pieces for n in range(count))]


def calls(count: int) -> Behaviour:
    """Return a behaviour that sends parallel calls to `look`."""

    async def play(exchange: Exchange) -> None:
        await reply([*call_chunks(count), EndChunk("calls")])(exchange)

    return play


def thinking_chunks(count: int) -> list[Chunk]:
    """Return the chunks of a reply with every kind of content: reasoning, text and parallel calls."""
    signature = f"signature{time.monotonic_ns()}"
    thoughts = [ReasoningChunk("Let me "), ReasoningChunk("look."), ReasoningEnd(Reasoning("Let me look.", signature))]
    words = [TextChunk("I will "), TextChunk("look. ")]
    ending = [UsageChunk(Usage(100, 20, 40)), EndChunk("calls" if count else "stop")]
    return [*thoughts, *words, *call_chunks(count), *ending]


def thinking(count: int) -> Behaviour:
    """Return a behaviour that sends the reply from `thinking_chunks`."""

    async def play(exchange: Exchange) -> None:
        await reply(thinking_chunks(count))(exchange)

    return play


def raw(data: bytes, is_reset: bool = False) -> Behaviour:
    """Return a behaviour that sends these bytes in an event stream, then drops the connection."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(data))
        exchange.drop(is_reset)

    return play


def dropped(count: int, is_reset: bool = False) -> Behaviour:
    """Return a behaviour that sends tokens, then drops the connection."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_chunks(*map(token, range(count)))
        exchange.drop(is_reset)

    return play


def http_response(status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> Behaviour:
    """Return a behaviour that sends a plain HTTP response."""

    async def play(exchange: Exchange) -> None:
        await exchange.respond(status, body, headers)

    return play


def failing(status: int, retry_after: str = "", message: str = "") -> Behaviour:
    """Return a behaviour that sends an error in the API's format."""
    headers = "Content-Type: application/json\r\n" + (f"Retry-After: {retry_after}\r\n" if retry_after else "")

    async def play(exchange: Exchange) -> None:
        await exchange.send_error(status, message or f"the server says {status}", headers)

    return play


def html() -> Behaviour:
    """Return a behaviour that sends a web page instead of a reply."""
    return http_response(200, b"<!doctype html><title>Sign in</title>", "Content-Type: text/html\r\n")


def garbage(count: int = 0) -> Behaviour:
    """Return a behaviour that sends tokens, then invalid JSON, and drops the connection."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_chunks(*map(token, range(count)))
        await exchange.send(chunked(b"data: {nonsense\n\n"))
        exchange.drop()

    return play


def hanging(count: int) -> Behaviour:
    """Return a behaviour that sends headers and tokens, then nothing more."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send_chunks(*map(token, range(count)))
        await asyncio.get_running_loop().create_future()

    return play


def silent() -> Behaviour:
    """Return a behaviour that sends headers, then nothing more."""
    return hanging(0)


def blackhole() -> Behaviour:
    """Return a behaviour that sends nothing at all."""

    async def play(_: Exchange) -> None:
        await asyncio.get_running_loop().create_future()

    return play


def echo() -> Behaviour:
    """Return a behaviour that replies with the text of the request's last message."""

    async def play(exchange: Exchange) -> None:
        await text([exchange.event_writer.prompt(exchange.request.body)])(exchange)

    return play


def behaviour_named(model: str) -> Behaviour:
    """Return the behaviour that a model name requests, such as `stream-1000@50` or `status-503`."""
    kind, _, value = model.partition("-")
    count, _, rate = value.partition("@")
    number = int(count or "1")
    makers: dict[str, Callable[[], Behaviour]] = {
        "stream": lambda: tokens(number, float(rate or "0")),
        "token": lambda: tokens(number),
        "hang": lambda: hanging(number),
        "drop": lambda: dropped(number),
        "reset": lambda: dropped(number, is_reset=True),
        "calls": lambda: calls(number),
        "thinking": lambda: thinking(number),
        "status": lambda: failing(number, rate),
        "garbage": lambda: garbage(int(count or "0")),
        "silent": silent,
        "blackhole": blackhole,
        "html": html,
        "echo": echo,
    }
    return makers[kind]() if kind in makers else failing(404, message="no such model")
