"""A fake model server on raw sockets: it can do what no framework lets it, and sees when its client leaves.

In a test: `async with ModelServer([tokens(3), silent()]) as server`, one behaviour per request, in order.
As a process: `python -m tests.fakes.models.server --port 0` prints its port as a JSON line; there the request's model
names the behaviour (see `tests.fakes.models.behaviours.named`), and `GET /_requests` tells what was seen.
It speaks three APIs, on /v1/chat/completions, /v1/responses and /v1/messages. When it is strict, a request that the
vendor would refuse is answered with 400 and the reason.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tests.fakes.models.behaviours import Behaviour, failing, named
from tests.fakes.models.exchange import Exchange, Seen
from tests.fakes.models.history_rules import check_request


class ModelServer:
    """Plays one behaviour per request; without a script, the one that the model's name says."""

    def __init__(self, script: Sequence[Behaviour] | None = None, is_strict: bool = False) -> None:
        self._is_strict = is_strict
        self._script = None if script is None else list(script)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._arrival = asyncio.Condition()
        self.port = 0
        self.connection_count = 0
        self.requests: list[Seen] = []

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

    async def request(self, number: int) -> Seen:
        """Wait for the request of that number, from 1."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.connection_count += 1
        try:
            await self._answer_all(self.connection_count, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer_all(self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer request after request; one byte is always being read, for it alone tells that the client left."""
        watch = asyncio.create_task(_first_byte(reader))
        try:
            while byte := await watch:
                method, path, headers = await _read_head(byte, reader)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if method == "GET":
                    await self._report(writer)
                    watch = asyncio.create_task(_first_byte(reader))
                    continue
                seen = Seen(path, headers, json.loads(body), connection, time.perf_counter())
                behaviour = await self._record(seen)
                watch = asyncio.create_task(_first_byte(reader))
                watch.add_done_callback(seen.note_end)
                if not await _play(behaviour, Exchange(seen, writer), watch):
                    return
        finally:
            watch.cancel()

    async def _record(self, seen: Seen) -> Behaviour:
        number = len(self.requests)
        async with self._arrival:
            self.requests.append(seen)
            self._arrival.notify_all()
        if self._is_strict:
            try:
                check_request(seen.path, seen.headers, seen.body)
            except AssertionError as error:
                return failing(400, words=str(error))
        return named(seen.body["model"]) if self._script is None else self._script[number]

    async def _report(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps([seen.as_json() for seen in self.requests]).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()


async def _play(behaviour: Behaviour, exchange: Exchange, watch: "asyncio.Task[bytes]") -> bool:
    """Play it until it is over or the client has left; say whether the connection can go on."""
    play = asyncio.create_task(behaviour(exchange))
    try:
        await asyncio.wait({play, watch}, return_when=asyncio.FIRST_COMPLETED)
        if watch.done() and watch.result():  # the next request, while this one is being ended
            await asyncio.wait({play})
        if play.done():
            with contextlib.suppress(OSError):
                play.result()
                return not exchange.is_dropped
        return False
    finally:
        play.cancel()
        await asyncio.wait({play})


async def _first_byte(reader: asyncio.StreamReader) -> bytes:
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
