"""A request to a fake model server, and the socket for its response."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hark.protocol.provider import Chunk
from tests.fakes.models.event_writer import EventWriter, event_writer_for


@dataclass(slots=True)
class ReceivedRequest:
    """A received request. Its times are in `time.perf_counter` seconds, which are comparable between processes."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int
    arrived_at: float
    disconnected_at: float | None = None
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    def record_disconnect(self, reader: "asyncio.Task[bytes]") -> None:
        """Record a disconnect if the socket read finished without data."""
        if not reader.cancelled() and not reader.result():
            self.disconnected_at = time.perf_counter()
            self.disconnected.set()

    def as_json(self) -> dict[str, Any]:
        times = {"arrived": self.arrived_at, "left": self.disconnected_at}
        return {"path": self.path, "body": self.body, "connection": self.connection, **times}


class Exchange:
    """A request and its response, which can be written as bytes, API events or chunks."""

    def __init__(self, seen: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        self.request = seen
        self.event_writer: EventWriter = event_writer_for(seen.path)
        self.is_dropped = False
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def begin(self, content_type: str = "text/event-stream") -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        await self.send(head.encode())

    async def send_events(self, *events: Any) -> None:
        await self.send(b"".join(chunked(sse(event)) for event in events))

    async def send_chunks(self, *chunks: Chunk) -> None:
        await self.send_events(*self.event_writer.events(chunks))

    async def end(self) -> None:
        await self.send(
            chunked(self.event_writer.terminator) + b"0\r\n\r\n" if self.event_writer.terminator else b"0\r\n\r\n"
        )

    async def respond(self, status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> None:
        await self.send(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def send_complete_reply(self, chunks: Sequence[Chunk]) -> None:
        await self.respond(200, json.dumps(self.event_writer.complete_reply(chunks)).encode())

    async def send_error(self, status: int, text: str, headers: str = "Content-Type: application/json\r\n") -> None:
        await self.respond(status, json.dumps(self.event_writer.error(status, text)).encode(), headers)

    def drop(self, is_reset: bool = False) -> None:
        """Close the connection with FIN, or with RST if `is_reset`."""
        self.is_dropped = True
        if is_reset:
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        else:
            self._writer.close()


def sse(event: Any) -> bytes:
    """Return an event in wire format. An event with a type also gets a name, as in the newer APIs."""
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
