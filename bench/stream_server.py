"""A fake model server for thousands of streams with little CPU. Run it with `python -m bench.stream_server`.

It prints its port on stdout. The last message of a request selects the behaviour: "200 tokens at 20" streams
that many tokens at that rate, and "call NAME {...}" calls that tool. A tool result is answered with three tokens.
A request for model "401" or "404" fails with that status.
"""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

SLOT_SECONDS = 0.002
TOKENS = re.compile(r"(\d+) tokens at (\d+)")
CALL = re.compile(r"call (\w+) (\{.*\})")
FAST_RATE = 1000  # tokens per second, for short replies


class TokenTimer:
    """A timer shared by all streams with the same rate. Each stream gets one token per period, in its own time slot."""

    def __init__(self, rate: int) -> None:
        self._slots: list[set[StreamConnection]] = [set() for _ in range(max(1, round(1 / rate / SLOT_SECONDS)))]
        self._period = 1 / rate
        self._client_count = 0
        self._task = asyncio.ensure_future(self._run())

    def add_client(self, client: "StreamConnection") -> Callable[[], None]:
        """Start sending tokens to a client. Return a function that stops sending."""
        slot = self._slots[self._client_count % len(self._slots)]
        self._client_count += 1
        slot.add(client)
        return lambda: slot.discard(client)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for slot in self._slots:
                for client in tuple(slot):
                    client.send_token()
                due = max(due + self._period / len(self._slots), loop.time() - self._period)
                await asyncio.sleep(max(0.0, due - loop.time()))


class StreamConnection(asyncio.Protocol):
    """One connection from the agent to the fake model server."""

    def __init__(self, server: "StreamServer") -> None:
        self._server = server
        self._received = b""
        self._remaining_tokens = 0
        self._stop_stream: Callable[[], None] = lambda: None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_stream()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        match = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if match and len(body) >= int(match[1]):
            self._received = b""
            self._handle_request(json.loads(body))
        elif b"chunked" in head.lower() and body.endswith(b"0\r\n\r\n"):
            self._received = b""
            self._handle_request(json.loads(_decode_chunks(body)))
        elif head.startswith(b"GET"):
            self._received = b""
            counts = json.dumps({"tokens": self._server.sent_tokens, "requests": self._server.requests}).encode()
            self._send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(counts), counts))

    def send_token(self) -> None:
        """Send one token, or the end of the stream after the last token."""
        if self._remaining_tokens:
            self._remaining_tokens -= 1
            self._server.sent_tokens += 1
            self._send(_TOKEN)
        else:
            self._stop_stream()
            self._send(_END)

    def _handle_request(self, request: dict[str, Any]) -> None:
        self._server.requests += 1
        if request["model"] in ("401", "404"):
            self._send_error(int(request["model"]))
            return
        self._send(_HEAD)
        last = request["messages"][-1]
        prompt = str(last.get("content"))
        if last["role"] == "user" and (call := CALL.search(prompt)):
            function = {"name": call[1], "arguments": call[2]}
            delta = {"tool_calls": [{"index": 0, "id": f"c{self._server.requests}", "function": function}]}
            self._send(_encode_event(delta, "tool_calls") + _DONE)
            return
        tokens = TOKENS.search(prompt) if last["role"] == "user" else None
        self._remaining_tokens, rate = (int(tokens[1]), int(tokens[2])) if tokens else (3, FAST_RATE)
        self._stop_stream()
        self._stop_stream = self._server.timer(rate).add_client(self)

    def _send_error(self, status: int) -> None:
        message = {401: "Incorrect API key provided", 404: "The model does not exist"}[status]
        code = {401: "invalid_api_key", 404: "model_not_found"}[status]
        body = json.dumps({"error": {"message": message, "code": code, "type": "invalid_request_error"}}).encode()
        head = b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._send(head % (status, len(body)) + body)

    def _send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


class StreamServer:
    """The state of the fake model server: its counters, and its timers by rate."""

    def __init__(self) -> None:
        self.sent_tokens = 0
        self.requests = 0
        self._timers: dict[int, TokenTimer] = {}

    def timer(self, rate: int) -> TokenTimer:
        """Return the timer for `rate`, creating it if needed."""
        if rate not in self._timers:
            self._timers[rate] = TokenTimer(rate)
        return self._timers[rate]


def _encode_http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _decode_chunks(body: bytes) -> bytes:
    chunks: list[bytes] = []
    while body:
        size, _, remainder = body.partition(b"\r\n")
        count = int(size, 16)
        chunks.append(remainder[:count])
        body = remainder[count + 2 :]
    return b"".join(chunks)


def _encode_event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fast", "choices": [choice]}
    return _encode_http_chunk(b"data: %b\n\n" % json.dumps(chunk).encode())


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_TOKEN = _encode_event({"content": "token "})
_DONE = _encode_http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_END = _encode_event({}, "stop") + _DONE


async def _main() -> None:
    server = StreamServer()
    listener = await asyncio.get_running_loop().create_server(
        lambda: StreamConnection(server), "127.0.0.1", 0, backlog=4096
    )
    print(json.dumps({"port": listener.sockets[0].getsockname()[1]}), flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
