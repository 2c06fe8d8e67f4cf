"""Ten thousand unloaded sessions: memory of the process, and the time to load one for a message."""

import asyncio
import time

from bench.gateway_process import (
    GatewayProcess,
    read_metric,
    run_gateway,
    run_stream_server,
    send_message,
    wait_until_idle,
)
from bench.run import BenchOptions
from bench.table import Figure, Percentiles

SESSIONS = 10_000
MAX_CONCURRENT_MESSAGES = 50
WAKES = 100
SETTINGS = "[limits]\nsleep_seconds = 30\n"


def measure(options: BenchOptions) -> list[Figure]:
    """Send a message to each session, wait until all sessions are unloaded, then send messages to some of them."""
    with run_stream_server() as base_url, run_gateway(base_url, settings=SETTINGS) as running_gateway:
        figures = options.run(_measure(running_gateway, options.scale(SESSIONS)))
        assert running_gateway.terminate() == 143
    return figures


async def _measure(gateway: GatewayProcess, count: int) -> list[Figure]:
    start = gateway.memory_mb
    async with gateway.client() as client:
        gate = asyncio.Semaphore(MAX_CONCURRENT_MESSAGES)

        async def start_session(session: str) -> None:
            async with gate:
                await send_message(client, session, f"hello from {session}")

        cpu = gateway.cpu_seconds
        await asyncio.gather(*(start_session(f"s{number}") for number in range(count)))
        await wait_until_idle(client)
        cpu = gateway.cpu_seconds - cpu
        loaded_mb = gateway.memory_mb
        while await read_metric(client, "hark_sessions_open"):  # noqa: ASYNC110 the state is in another process
            await asyncio.sleep(0.5)
        unloaded_mb = gateway.memory_mb
        idle = gateway.cpu_seconds
        await asyncio.sleep(10)
        idle = (gateway.cpu_seconds - idle) / 10
        load_times: list[float] = []
        for number in range(0, count, max(1, count // WAKES)):
            started = time.perf_counter()
            await send_message(client, f"s{number}", "and again")
            load_times.append((time.perf_counter() - started) * 1000)
            await wait_until_idle(client)
            async with client.get(f"/api/sessions/s{number}/transcript") as response:
                texts = [row["text"] for row in (await response.json())["messages"]]
            assert texts[0] == f"hello from s{number}", texts
            assert (texts[2], len(texts)) == ("and again", 4), texts
    return [
        Figure("memory at the start", "MB", Percentiles(start)),
        Figure(f"memory with {count} loaded sessions", "MB", Percentiles(loaded_mb)),
        Figure(f"memory with {count} unloaded sessions", "MB", Percentiles(unloaded_mb), None, Percentiles(200)),
        Figure("CPU of a session's first turn", "ms", Percentiles(cpu / count * 1000)),
        Figure(f"CPU with {count} unloaded sessions, share of one core", "%", Percentiles(idle * 100)),
        Figure("message to an unloaded session, to its receipt", "ms", Percentiles.of(load_times)),
    ]
