"""The baseline for the benchmarks: reads the same stream with only aiohttp and a JSON decoder."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import msgspec

from bench.model import FakeModelServer


def open_http_session() -> aiohttp.ClientSession:
    """Return an HTTP session without a connection limit."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))


async def stream_reply(
    http: aiohttp.ClientSession, server: FakeModelServer, model: str, text: str
) -> AsyncGenerator[str, None]:
    """Stream a reply and yield its text chunks, without any error handling."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "stream": True})
    remainder = b""
    async with http.post(f"{server.base_url}/chat/completions", data=body) as response:
        async for data in response.content.iter_any():
            *lines, remainder = (remainder + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    for choice in _decode(line[6:])["choices"]:
                        if content := choice["delta"].get("content"):
                            yield content


async def count_chunks(http: aiohttp.ClientSession, server: FakeModelServer, model: str, text: str) -> int:
    """Stream a reply and return the number of its text chunks."""
    count = 0
    async for _ in stream_reply(http, server, model, text):
        count += 1
    return count


@contextmanager
def open_bare_store(store: str) -> Generator[Callable[[str], None]]:
    """Yield a function that stores a line as durably as the Hark store named `store`."""
    with TemporaryDirectory(prefix="hark-bench-") as home:
        path = Path(home, "bare.db") if store == "sqlite" else ":memory:"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("CREATE TABLE lines (line TEXT)")
            yield lambda line: connection.execute("INSERT INTO lines VALUES (?)", (line,)).close()


_decode = msgspec.json.Decoder().decode
