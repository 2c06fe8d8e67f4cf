"""A fake model server on raw sockets. It can misbehave in ways that no framework allows, and detects client
disconnects.

In a test: `async with ModelServer([tokens(3), silent()]) as server`, one behaviour per request, in order.
As a process: `python -m tests.fakes.models.server --port 0` prints its port as a JSON line. The request's model name
selects the behaviour (see `tests.fakes.models.behaviours.behaviour_named`), and `GET /_requests` lists all requests.
`GET /v1/models` has the status `models_status` and is counted in `probe_count`.
The server supports three APIs: /v1/chat/completions, /v1/responses and /v1/messages. In strict mode, a request that
the vendor would refuse gets a 400 response with the reason.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tests.fakes.models.behaviours import Behaviour, behaviour_named, failing
from tests.fakes.models.exchange import Exchange, ReceivedRequest
from tests.fakes.models.history_rules import check_request


class ModelServer:
    """A fake model server that plays one behaviour per request, scripted or selected by the model name."""

    def __init__(self, script: Sequence[Behaviour] | None = None, is_strict: bool = False) -> None:
        self._is_strict = is_strict
        self._script = None if script is None else list(script)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._arrival = asyncio.Condition()
        self.port = 0
        self.connection_count = 0
        self.requests: list[ReceivedRequest] = []
        self.models_status = 200
        self.probe_count = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def request(self, number: int) -> ReceivedRequest:
        """Wait for the request with this number, counted from 1."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    async def probes(self, number: int) -> None:
        """Wait until this many probes have arrived."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: self.probe_count >= number)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.connection_count += 1
        try:
            await self._serve_requests(self.connection_count, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve_requests(
        self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve requests one by one. A read is always pending, because only a read detects a disconnect."""
        reading = asyncio.create_task(_read_first_byte(reader))
        try:
            while byte := await reading:
                method, path, headers = await _read_head(byte, reader)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if method == "GET":
                    await (self._answer_probe(writer) if path.endswith("/models") else self._report(writer))
                    reading = asyncio.create_task(_read_first_byte(reader))
                    continue
                seen = ReceivedRequest(path, headers, json.loads(body), connection, time.perf_counter())
                behaviour = await self._record(seen)
                reading = asyncio.create_task(_read_first_byte(reader))
                reading.add_done_callback(seen.record_disconnect)
                if not await _play(behaviour, Exchange(seen, writer), reading):
                    return
        finally:
            reading.cancel()

    async def _record(self, seen: ReceivedRequest) -> Behaviour:
        number = len(self.requests)
        async with self._arrival:
            self.requests.append(seen)
            self._arrival.notify_all()
        if self._is_strict:
            try:
                check_request(seen.path, seen.headers, seen.body)
            except AssertionError as error:
                return failing(400, message=str(error))
        return behaviour_named(seen.body["model"]) if self._script is None else self._script[number]

    async def _answer_probe(self, writer: asyncio.StreamWriter) -> None:
        async with self._arrival:
            self.probe_count += 1
            self._arrival.notify_all()
        writer.write(b"HTTP/1.1 %d Status\r\nContent-Length: 0\r\n\r\n" % self.models_status)
        await writer.drain()

    async def _report(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps([seen.as_json() for seen in self.requests]).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()


async def _play(behaviour: Behaviour, exchange: Exchange, reading: "asyncio.Task[bytes]") -> bool:
    """Play the behaviour until it ends or the client disconnects. Return whether the connection can be reused."""
    play = asyncio.create_task(behaviour(exchange))
    try:
        await asyncio.wait({play, reading}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and reading.result():  # the next request arrives while this one ends
            await asyncio.wait({play})
        if play.done():
            with contextlib.suppress(OSError):
                play.result()
                return not exchange.is_dropped
        return False
    finally:
        play.cancel()
        await asyncio.wait({play})


async def _read_first_byte(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(1)
    except OSError:
        return b""


async def _read_head(first: bytes, reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]]:
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
    request_line, *lines = head.rstrip().split("\r\n")
    method, path, _ = request_line.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, path, headers


async def _main(arguments: Any) -> None:
    server = ModelServer(is_strict=arguments.strict)
    await server.start(arguments.port)
    print(json.dumps({"port": server.port}), flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--strict", action="store_true")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args()))
