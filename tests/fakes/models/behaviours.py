"""What a fake model server does with a request, whichever of the three APIs it came by."""

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
from tests.fakes.models.exchange import Seen as Seen
from tests.fakes.models.exchange import chunked as chunked
from tests.fakes.models.exchange import sse as sse

BATCH = 64  # chunks per write where no rate is asked for

Behaviour = Callable[[Exchange], Coroutine[Any, Any, None]]


def reply(chunks: Sequence[Chunk]) -> Behaviour:
    """A whole reply of these chunks, each in a write of its own; in one piece if no stream was asked for."""

    async def play(exchange: Exchange) -> None:
        if exchange.seen.body.get("stream") is False:
            await exchange.whole(chunks)
            return
        await exchange.begin()
        for chunk in chunks:
            await exchange.say(chunk)
        await exchange.end()

    return play


def text(words: Sequence[str]) -> Behaviour:
    """A whole reply of these words."""
    return reply([*(TextChunk(word) for word in words), UsageChunk(Usage(10, len(words))), EndChunk()])


def token(number: int) -> TextChunk:
    return TextChunk(f"tok{number} ")


def tokens(count: int, rate: float = 0.0) -> Behaviour:
    """A whole reply of `count` tokens, `rate` per second (0: as fast as it goes)."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        if rate:
            start = time.perf_counter()
            for number in range(count):
                await exchange.say(token(number))
                await asyncio.sleep(max(0.0, start + (number + 1) / rate - time.perf_counter()))
        else:
            for first in range(0, count, BATCH):
                await exchange.say(*(token(number) for number in range(first, min(first + BATCH, count))))
        await exchange.say(UsageChunk(Usage(10, count)), EndChunk())
        await exchange.end()

    return play


def events(all_events: Sequence[Any], is_ended: bool = True) -> Behaviour:
    """These events, each in a write of its own; then the API's last word, or the plain end of the body."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        for event in all_events:
            await exchange.events(event)
        await (exchange.end() if is_ended else exchange.send(b"0\r\n\r\n"))

    return play


def call_chunks(count: int) -> list[CallChunk]:
    """Parallel calls of `look`, their arguments in pieces that come in turns."""
    opening = [CallChunk(n, f"call_{time.monotonic_ns()}_{n}", "look") for n in range(count)]
    pieces = ['{"pla', 'ce": ', '"here"}']
    return [*opening, *(CallChunk(n, arguments=piece) for piece in pieces for n in range(count))]


def calls(count: int) -> Behaviour:
    """Parallel calls of `look`."""

    async def play(exchange: Exchange) -> None:
        await reply([*call_chunks(count), EndChunk("calls")])(exchange)

    return play


def thinking_chunks(count: int) -> list[Chunk]:
    """Thinking, a text and parallel calls: all that a reply can hold."""
    signature = f"signature{time.monotonic_ns()}"
    thoughts = [ReasoningChunk("Let me "), ReasoningChunk("look."), ReasoningEnd(Reasoning("Let me look.", signature))]
    words = [TextChunk("I will "), TextChunk("look. ")]
    ending = [UsageChunk(Usage(100, 20, 40)), EndChunk("calls" if count else "stop")]
    return [*thoughts, *words, *call_chunks(count), *ending]


def thinking(count: int) -> Behaviour:
    """The reply of `thinking_chunks`."""

    async def play(exchange: Exchange) -> None:
        await reply(thinking_chunks(count))(exchange)

    return play


def raw(data: bytes, is_reset: bool = False) -> Behaviour:
    """These bytes inside an event stream, then the connection drops."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(data))
        exchange.drop(is_reset)

    return play


def dropped(count: int, is_reset: bool = False) -> Behaviour:
    """Tokens, then the connection drops."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(*map(token, range(count)))
        exchange.drop(is_reset)

    return play


def answer(status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> Behaviour:
    """A plain answer."""

    async def play(exchange: Exchange) -> None:
        await exchange.answer(status, body, headers)

    return play


def failing(status: int, retry_after: str = "", words: str = "") -> Behaviour:
    """An error as the API would say it."""
    headers = "Content-Type: application/json\r\n" + (f"Retry-After: {retry_after}\r\n" if retry_after else "")

    async def play(exchange: Exchange) -> None:
        await exchange.refuse(status, words or f"the server says {status}", headers)

    return play


def html() -> Behaviour:
    """A web page where a reply should be."""
    return answer(200, b"<!doctype html><title>Sign in</title>", "Content-Type: text/html\r\n")


def garbage(count: int = 0) -> Behaviour:
    """Tokens, then what is no JSON."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(*map(token, range(count)))
        await exchange.send(chunked(b"data: {nonsense\n\n"))
        exchange.drop()

    return play


def hanging(count: int) -> Behaviour:
    """Headers and tokens, then silence."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(*map(token, range(count)))
        await asyncio.get_running_loop().create_future()

    return play


def silent() -> Behaviour:
    """Headers, then silence."""
    return hanging(0)


def blackhole() -> Behaviour:
    """Nothing at all."""

    async def play(_: Exchange) -> None:
        await asyncio.get_running_loop().create_future()

    return play


def echo() -> Behaviour:
    """The last message's text."""

    async def play(exchange: Exchange) -> None:
        await text([exchange.speaker.prompt(exchange.seen.body)])(exchange)

    return play


def named(model: str) -> Behaviour:
    """Return the behaviour that a model's name asks for, such as `stream-1000@50` or `status-503`."""
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
    return makers[kind]() if kind in makers else failing(404, words="no such model")
