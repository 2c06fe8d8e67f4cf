"""Two thousand sessions streaming through `hark serve`: CPU, memory, event loop lag, and the time to stop one."""

import asyncio
import time
from urllib.parse import urlsplit

import aiohttp

from bench.gateway_process import (
    GatewayProcess,
    count_sent_tokens,
    interrupt_turn,
    read_metric,
    run_gateway,
    run_stream_server,
    send_message,
)
from bench.run import BenchOptions
from bench.table import Figure, Percentiles

SESSIONS = 2_000
RATE = 20  # tokens per second and session
HOLD_SECONDS = 65.0  # the lag metric covers the last minute, which must contain only streaming
MAX_CONCURRENT_MESSAGES = 100  # messages sent concurrently at the start
STOPS = 300
LAG = 'hark_event_loop_lag_seconds{quantile="%s"}'


def measure(options: BenchOptions) -> list[Figure]:
    """Measure without event readers, with readers for a tenth of the sessions, and with readers for all sessions."""
    figures: list[Figure] = []
    for name, share in (("no readers", 0), ("10 % with readers", 0.1), ("all with readers", 1)):
        with run_stream_server() as base_url, run_gateway(base_url) as running_gateway:
            figures += options.run(_measure(running_gateway, base_url, options, name, share))
            assert running_gateway.terminate() == 143
    return figures


async def _measure(
    gateway: GatewayProcess, base_url: str, options: BenchOptions, name: str, share: float
) -> list[Figure]:
    count, hold = options.scale(SESSIONS), 15.0 if options.is_quick else HOLD_SECONDS
    sessions = [f"s{number}" for number in range(count)]
    async with gateway.client() as client:
        readers = [await _open_reader(gateway, session) for session in sessions[: int(count * share)]]
        before = gateway.memory_mb
        await _start_streams(client, sessions)
        await asyncio.sleep(2)
        memory = (gateway.memory_mb - before) * 1000 / count
        cpu, wall, tokens = gateway.cpu_seconds, time.perf_counter(), await count_sent_tokens(base_url)
        health_times = await _measure_health_checks(client, hold)
        cpu, wall = gateway.cpu_seconds - cpu, time.perf_counter() - wall
        tokens = await count_sent_tokens(base_url) - tokens
        lag = Percentiles(await read_metric(client, LAG % "0.5") * 1000, await read_metric(client, LAG % "0.99") * 1000)
        stops, settles = await _measure_stops(client, sessions)
        for reader in readers:
            assert reader.received, "a reader received no events"
            reader.close()
    return [
        Figure(f"{name}: tokens", "1/s", Percentiles(tokens / wall)),
        Figure(f"{name}: CPU", "µs/token", Percentiles(cpu / tokens * 1e6)),
        Figure(f"{name}: share of one core", "%", Percentiles(cpu / wall * 100)),
        Figure(f"{name}: event-loop lag", "ms", lag, None, Percentiles(50, 50)),
        Figure(f"{name}: GET /healthz", "ms", health_times),
        Figure(f"{name}: POST interrupt to response", "ms", stops, None, Percentiles(50, 50)),
        Figure(f"{name}: cancel to settled turn", "ms", settles, None, Percentiles(50, 50)),
        Figure(f"{name}: memory per session", "kB", Percentiles(memory)),
    ]


async def _start_streams(client: aiohttp.ClientSession, sessions: list[str]) -> None:
    gate = asyncio.Semaphore(MAX_CONCURRENT_MESSAGES)

    async def start(session: str) -> None:
        async with gate:
            await send_message(client, session, f"100000 tokens at {RATE}")

    await asyncio.gather(*map(start, sessions))


async def _measure_health_checks(client: aiohttp.ClientSession, seconds: float) -> Percentiles:
    """Send ten health checks per second. Return the response times."""
    end = time.perf_counter() + seconds
    times: list[float] = []
    while (started := time.perf_counter()) < end:
        async with client.get("/healthz") as response:
            await response.read()
        times.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.1)
    return Percentiles.of(times)


async def _measure_stops(client: aiohttp.ClientSession, sessions: list[str]) -> tuple[Percentiles, Percentiles]:
    """Stop some sessions one after another. Return the response times, and the settle times that Hark reports."""
    response_times: list[float] = []
    settle_times: list[float] = []
    for session in sessions[:: max(1, len(sessions) // STOPS)]:
        started = time.perf_counter()
        settled = await interrupt_turn(client, session)
        response_times.append((time.perf_counter() - started) * 1000)
        assert settled["outcome"]["type"] == "interrupted"
        settle_times.append(settled["timings"]["settle"])
        await asyncio.sleep(0.005)
    return Percentiles.of(response_times), Percentiles.of(settle_times)


class _EventReader(asyncio.Protocol):
    """Reads a session's events and only counts the bytes, so that the client costs little CPU."""

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


async def _open_reader(gateway: GatewayProcess, session: str) -> _EventReader:
    url = urlsplit(gateway.base)
    assert url.hostname is not None
    assert url.port is not None
    host, port = url.hostname, url.port
    request = f"GET /api/sessions/{session}/events HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
    _, reader = await asyncio.get_running_loop().create_connection(lambda: _EventReader(request), host, port)
    return reader
