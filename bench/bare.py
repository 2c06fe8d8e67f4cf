"""The bare loop: what the same stream costs with aiohttp and a JSON decoder alone."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import msgspec

from bench.model import Server


def open_http() -> aiohttp.ClientSession:
    """Return a session with no limit on connections."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))


async def stream(http: aiohttp.ClientSession, server: Server, model: str, text: str) -> AsyncGenerator[str, None]:
    """Yield the pieces of a reply's text, with no thought for what may go wrong."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "stream": True})
    rest = b""
    async with http.post(f"{server.base_url}/chat/completions", data=body) as response:
        async for data in response.content.iter_any():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    for choice in _decode(line[6:])["choices"]:
                        if content := choice["delta"].get("content"):
                            yield content


async def read_all(http: aiohttp.ClientSession, server: Server, model: str, text: str) -> int:
    """Return how many pieces a reply has."""
    count = 0
    async for _ in stream(http, server, model, text):
        count += 1
    return count


@contextmanager
def bare_store(store: str) -> Generator[Callable[[str], None]]:
    """Give a function that keeps a line as durably as the store of that name does."""
    with TemporaryDirectory(prefix="hark-bench-") as home:
        place = Path(home, "bare.db") if store == "sqlite" else ":memory:"
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("CREATE TABLE lines (line TEXT)")
            yield lambda line: connection.execute("INSERT INTO lines VALUES (?)", (line,)).close()


_decode = msgspec.json.Decoder().decode
