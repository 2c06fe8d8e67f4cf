"""A model server that streams to thousands and costs little: `python -m bench.stream_server`, its port on stdout.

The last message says what it does: "200 tokens at 20" streams so many, so fast; "call NAME {...}" calls that tool, and
the result of a tool is answered in three tokens. A model named "401" or "404" is refused with that status.
"""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

SLOT_SECONDS = 0.002
TOKENS = re.compile(r"(\d+) tokens at (\d+)")
CALL = re.compile(r"call (\w+) (\{.*\})")
AT_ONCE = 1000  # a second; for short replies


class Wheel:
    """All streams of one rate: each gets a token every period, at a time of its own within it."""

    def __init__(self, rate: int) -> None:
        self._slots: list[set[Client]] = [set() for _ in range(max(1, round(1 / rate / SLOT_SECONDS)))]
        self._period = 1 / rate
        self._joined = 0
        self._turning = asyncio.ensure_future(self._turn())

    def join(self, client: "Client") -> Callable[[], None]:
        """Serve a client from now on; return what ends it."""
        slot = self._slots[self._joined % len(self._slots)]
        self._joined += 1
        slot.add(client)
        return lambda: slot.discard(client)

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for slot in self._slots:
                for client in tuple(slot):
                    client.tick()
                due = max(due + self._period / len(self._slots), loop.time() - self._period)
                await asyncio.sleep(max(0.0, due - loop.time()))


class Client(asyncio.Protocol):
    """One connection of the agent."""

    def __init__(self, server: "StreamServer") -> None:
        self._server = server
        self._received = b""
        self._left = 0
        self._leave: Callable[[], None] = lambda: None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if found and len(body) >= int(found[1]):
            self._received = b""
            self._answer(json.loads(body))
        elif b"chunked" in head.lower() and body.endswith(b"0\r\n\r\n"):
            self._received = b""
            self._answer(json.loads(_unchunked(body)))
        elif head.startswith(b"GET"):
            self._received = b""
            told = json.dumps({"tokens": self._server.sent, "requests": self._server.requests}).encode()
            self._send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told))

    def tick(self) -> None:
        """Send one token, or the end behind the last."""
        if self._left:
            self._left -= 1
            self._server.sent += 1
            self._send(_TOKEN)
        else:
            self._leave()
            self._send(_END)

    def _answer(self, request: dict[str, Any]) -> None:
        self._server.requests += 1
        if request["model"] in ("401", "404"):
            self._refuse(int(request["model"]))
            return
        self._send(_HEAD)
        last = request["messages"][-1]
        said = str(last.get("content"))
        if last["role"] == "user" and (call := CALL.search(said)):
            function = {"name": call[1], "arguments": call[2]}
            asked = {"tool_calls": [{"index": 0, "id": f"c{self._server.requests}", "function": function}]}
            self._send(_event(asked, "tool_calls") + _DONE)
            return
        tokens = TOKENS.search(said) if last["role"] == "user" else None
        self._left, rate = (int(tokens[1]), int(tokens[2])) if tokens else (3, AT_ONCE)
        self._leave()
        self._leave = self._server.wheel(rate).join(self)

    def _refuse(self, status: int) -> None:
        words = {401: "Incorrect API key provided", 404: "The model does not exist"}[status]
        code = {401: "invalid_api_key", 404: "model_not_found"}[status]
        body = json.dumps({"error": {"message": words, "code": code, "type": "invalid_request_error"}}).encode()
        head = b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._send(head % (status, len(body)) + body)

    def _send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


class StreamServer:
    """Counts what it sends."""

    def __init__(self) -> None:
        self.sent = 0
        self.requests = 0
        self._wheels: dict[int, Wheel] = {}

    def wheel(self, rate: int) -> Wheel:
        """Return the streams of that rate."""
        if rate not in self._wheels:
            self._wheels[rate] = Wheel(rate)
        return self._wheels[rate]


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _unchunked(body: bytes) -> bytes:
    pieces: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        count = int(size, 16)
        pieces.append(rest[:count])
        body = rest[count + 2 :]
    return b"".join(pieces)


def _event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fast", "choices": [choice]}
    return _chunk(b"data: %b\n\n" % json.dumps(told).encode())


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_TOKEN = _event({"content": "token "})
_DONE = _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_END = _event({}, "stop") + _DONE


async def _main() -> None:
    server = StreamServer()
    listening = await asyncio.get_running_loop().create_server(lambda: Client(server), "127.0.0.1", 0, backlog=4096)
    print(json.dumps({"port": listening.sockets[0].getsockname()[1]}), flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
