"""A request to a fake model server, and the socket for its answer."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hark.protocol.provider import Chunk
from tests.fakes.models.event_writer import Speaker, speaker_for


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
    """A request and the way to answer it: in bytes, in events of its API, or in chunks that its speaker words."""

    def __init__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        self.seen = seen
        self.speaker: Speaker = speaker_for(seen.path)
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

    async def say(self, *chunks: Chunk) -> None:
        await self.events(*self.speaker.events(chunks))

    async def end(self) -> None:
        await self.send(chunked(self.speaker.last) + b"0\r\n\r\n" if self.speaker.last else b"0\r\n\r\n")

    async def answer(self, status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> None:
        await self.send(f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def whole(self, chunks: Sequence[Chunk]) -> None:
        await self.answer(200, json.dumps(self.speaker.whole(chunks)).encode())

    async def refuse(self, status: int, words: str, headers: str = "Content-Type: application/json\r\n") -> None:
        await self.answer(status, json.dumps(self.speaker.error(status, words)).encode(), headers)

    def drop(self, is_reset: bool = False) -> None:
        """Close the connection: with FIN, or with RST."""
        self.is_dropped = True
        if is_reset:
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        else:
            self._writer.close()


def sse(event: Any) -> bytes:
    """Return an event on the wire; one with a type is also named, as the newer APIs do."""
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
