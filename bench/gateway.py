"""Two thousand sessions that stream at once through `hark serve`: CPU, memory, lag, and how fast one of them stops."""

import asyncio
import time
from urllib.parse import urlsplit

import aiohttp

from bench.run import Plan
from bench.served import Gateway, gateway, interrupt, metric, say, stream_server, tokens_sent
from bench.table import Figure, Spread

SESSIONS = 2_000
RATE = 20  # tokens a second, of each
HOLD_SECONDS = 65.0  # the lag is told for the last minute: all of it is to be of the streams
AT_ONCE = 100  # messages on their way when they are started
STOPS = 300
LAG = 'hark_event_loop_lag_seconds{quantile="%s"}'


def measure(plan: Plan) -> list[Figure]:
    """Measure it with nobody reading along, and with a reader of events for each session."""
    figures: list[Figure] = []
    for name, share in (("nobody reads", 0), ("one in ten is read", 0.1), ("all are read", 1)):
        with stream_server() as base_url, gateway(base_url) as served:
            figures += plan.run(_measure(served, base_url, plan, name, share))
            assert served.end() == 143
    return figures


async def _measure(served: Gateway, base_url: str, plan: Plan, name: str, share: float) -> list[Figure]:
    count, hold = plan.count(SESSIONS), 15.0 if plan.is_quick else HOLD_SECONDS
    sessions = [f"s{number}" for number in range(count)]
    async with served.client() as client:
        readers = [await _reader(served, session) for session in sessions[: int(count * share)]]
        before = served.memory_mb
        await _start(client, sessions)
        await asyncio.sleep(2)
        memory = (served.memory_mb - before) * 1000 / count
        cpu, wall, tokens = served.cpu_seconds, time.perf_counter(), await tokens_sent(base_url)
        healthy = await _healthy(client, hold)
        cpu, wall = served.cpu_seconds - cpu, time.perf_counter() - wall
        tokens = await tokens_sent(base_url) - tokens
        lag = Spread(await metric(client, LAG % "0.5") * 1000, await metric(client, LAG % "0.99") * 1000)
        stops, settles = await _stop(client, sessions)
        for reader in readers:
            assert reader.received, "a reader was told nothing"
            reader.close()
    return [
        Figure(f"{name}: tokens", "1/s", Spread(tokens / wall)),
        Figure(f"{name}: CPU", "µs/token", Spread(cpu / tokens * 1e6)),
        Figure(f"{name}: of one core", "%", Spread(cpu / wall * 100)),
        Figure(f"{name}: event-loop lag", "ms", lag, None, Spread(50, 50)),
        Figure(f"{name}: GET /healthz", "ms", healthy),
        Figure(f"{name}: POST interrupt to its answer", "ms", stops, None, Spread(50, 50)),
        Figure(f"{name}: cancel to settled", "ms", settles, None, Spread(50, 50)),
        Figure(f"{name}: memory of a session", "kB", Spread(memory)),
    ]


async def _start(client: aiohttp.ClientSession, sessions: list[str]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def start(session: str) -> None:
        async with gate:
            await say(client, session, f"100000 tokens at {RATE}")

    await asyncio.gather(*map(start, sessions))


async def _healthy(client: aiohttp.ClientSession, seconds: float) -> Spread:
    """Ask ten times a second how it is; return how long the answers took."""
    end = time.perf_counter() + seconds
    times: list[float] = []
    while (asked := time.perf_counter()) < end:
        async with client.get("/healthz") as response:
            await response.read()
        times.append((time.perf_counter() - asked) * 1000)
        await asyncio.sleep(0.1)
    return Spread.of(times)


async def _stop(client: aiohttp.ClientSession, sessions: list[str]) -> tuple[Spread, Spread]:
    """Stop some of them, one after the other; return how long that took, seen from here and from inside."""
    outside: list[float] = []
    inside: list[float] = []
    for session in sessions[:: max(1, len(sessions) // STOPS)]:
        asked = time.perf_counter()
        settled = await interrupt(client, session)
        outside.append((time.perf_counter() - asked) * 1000)
        assert settled["outcome"]["type"] == "interrupted"
        inside.append(settled["timings"]["settle"])
        await asyncio.sleep(0.005)
    return Spread.of(outside), Spread.of(inside)


class _Reader(asyncio.Protocol):
    """Reads a session's events and only counts the bytes: the load is to be the gateway's."""

    def __init__(self, request: bytes) -> None:
        self.received = 0
        self._request = request
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


async def _reader(served: Gateway, session: str) -> _Reader:
    where = urlsplit(served.base)
    assert where.hostname is not None
    assert where.port is not None
    host, port = where.hostname, where.port
    request = f"GET /api/sessions/{session}/events HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode()
    _, reader = await asyncio.get_running_loop().create_connection(lambda: _Reader(request), host, port)
    return reader
