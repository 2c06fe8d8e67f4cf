"""What a fake model server does with a request."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

BATCH = 64  # events per write where no rate is asked for


@dataclass(slots=True)
class Seen:
    """A request, when it came and when its client left, on the clock of time.perf_counter: processes share it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int
    arrived: float
    left_at: float | None = None
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def note_end(self, watch: "asyncio.Task[bytes]") -> None:
        """Note what the watch of the socket saw: no byte is the end."""
        if not watch.cancelled() and not watch.result():
            self.left_at = time.perf_counter()
            self.left.set()

    def as_json(self) -> dict[str, Any]:
        times = {"arrived": self.arrived, "left": self.left_at}
        return {"path": self.path, "body": self.body, "connection": self.connection, **times}


class Exchange:
    """A request and the socket for its answer."""

    def __init__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        self.seen = seen
        self.is_dropped = False
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def begin(self, content_type: str = "text/event-stream") -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        await self.send(head.encode())

    async def events(self, *events: Any) -> None:
        await self.send(b"".join(chunked(sse(event)) for event in events))

    async def end(self) -> None:
        await self.send(chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    async def answer(self, status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> None:
        await self.send(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def drop(self, is_reset: bool = False) -> None:
        """Close the connection: with FIN, or with RST."""
        self.is_dropped = True
        if is_reset:
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        else:
            self._writer.close()


Behaviour = Callable[[Exchange], Coroutine[Any, Any, None]]


def sse(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}


def usage(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}
    return {"choices": [], "usage": counts}


def call(index: int, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def call_part(index: int, arguments: str) -> dict[str, Any]:
    return {"index": index, "function": {"arguments": arguments}}


def text(words: Sequence[str]) -> Behaviour:
    """A whole reply of these words."""
    return events([*(delta(content=word) for word in words), delta("stop"), usage(10, len(words))])


def tokens(count: int, rate: float = 0.0) -> Behaviour:
    """A whole reply of `count` tokens, `rate` per second (0: as fast as it goes)."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        if rate:
            start = time.perf_counter()
            for number in range(count):
                await exchange.events(delta(content=f"tok{number} "))
                await asyncio.sleep(max(0.0, start + (number + 1) / rate - time.perf_counter()))
        else:
            for first in range(0, count, BATCH):
                numbers = range(first, min(first + BATCH, count))
                await exchange.events(*(delta(content=f"tok{number} ") for number in numbers))
        await exchange.events(delta("stop"), usage(10, count))
        await exchange.end()

    return play


def events(all_events: Sequence[Any], is_ended: bool = True) -> Behaviour:
    """These events, each in a write of its own; then [DONE], or the plain end of the body."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        for event in all_events:
            await exchange.events(event)
        await (exchange.end() if is_ended else exchange.send(b"0\r\n\r\n"))

    return play


def calls(count: int) -> Behaviour:
    """Parallel calls of `look`, their arguments in pieces that come in turns."""
    opening = [delta(tool_calls=[call(n, f"call_{time.monotonic_ns()}_{n}", "look", "")]) for n in range(count)]
    pieces = ['{"pla', 'ce": ', '"here"}']
    rest = [delta(tool_calls=[call_part(n, piece)]) for piece in pieces for n in range(count)]
    return events([*opening, *rest, delta("tool_calls")])


def raw(data: bytes, is_reset: bool = False) -> Behaviour:
    """These bytes inside an event stream, then the connection drops."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.send(chunked(data))
        exchange.drop(is_reset)

    return play


def dropped(count: int, is_reset: bool = False) -> Behaviour:
    """Tokens, then the connection drops."""
    return raw(b"".join(sse(delta(content=f"tok{number} ")) for number in range(count)), is_reset)


def answer(status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> Behaviour:
    """A plain answer."""

    async def play(exchange: Exchange) -> None:
        await exchange.answer(status, body, headers)

    return play


def failing(status: int, retry_after: str = "") -> Behaviour:
    """An error with the words that OpenAI would use."""
    headers = f"Content-Type: application/json\r\nRetry-After: {retry_after}\r\n" if retry_after else ""
    return answer(status, json.dumps({"error": {"message": f"the server says {status}"}}).encode(), headers)


def html() -> Behaviour:
    """A web page where a reply should be."""
    return answer(200, b"<!doctype html><title>Sign in</title>", "Content-Type: text/html\r\n")


def hanging(count: int) -> Behaviour:
    """Headers and tokens, then silence."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.events(*(delta(content=f"tok{number} ") for number in range(count)))
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
        await text([str(exchange.seen.body["messages"][-1]["content"])])(exchange)

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
        "status": lambda: failing(number, rate),
        "garbage": lambda: raw(b"data: {nonsense\n\n"),
        "silent": silent,
        "blackhole": blackhole,
        "html": html,
        "echo": echo,
    }
    return makers[kind]() if kind in makers else answer(404, b'{"error": {"message": "no such model"}}')
