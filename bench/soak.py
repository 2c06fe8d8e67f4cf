"""`python -m bench soak --minutes 10`: mixed traffic through `hark serve`, to check that its memory stays constant."""

import asyncio
import random
import time

import aiohttp

from bench.gateway_process import (
    GatewayProcess,
    interrupt_turn,
    run_gateway,
    run_stream_server,
    send_message,
    wait_until_idle,
)
from bench.run import BenchOptions
from bench.table import Figure, Percentiles

USERS = 20
SESSIONS = 100  # per minute; the sessions of earlier minutes are unloaded
WARM_SHARE = 0.3  # warm-up share of the time, after which memory must stay constant
SAMPLE_SECONDS = 2.0
SETTINGS = "[limits]\nsleep_seconds = 6\n"
MAX_GROWTH = 2.0  # MB per minute


def measure(options: BenchOptions) -> list[Figure]:
    """Simulate users who send messages, stop turns, use tools and read events for some minutes."""
    with run_stream_server() as base_url, run_gateway(base_url, settings=SETTINGS) as running_gateway:
        figures = options.run(_measure(running_gateway, options.minutes * 60))
        assert running_gateway.terminate() == 143
    return figures


async def _measure(gateway: GatewayProcess, seconds: float) -> list[Figure]:
    begin, action_count, samples = time.monotonic(), [0], list[tuple[float, float]]()
    async with gateway.client() as client, asyncio.TaskGroup() as users:
        cpu = gateway.cpu_seconds
        for _ in range(USERS):
            users.create_task(_simulate_user(client, begin, seconds, action_count))
        while (at := time.monotonic() - begin) < seconds:
            samples.append((at / 60, gateway.memory_mb))
            await asyncio.sleep(SAMPLE_SECONDS)
    async with gateway.client() as client:
        await wait_until_idle(client)
    warm = [(at, memory) for at, memory in samples if at * 60 > seconds * WARM_SHARE]
    memory_text = ", ".join(f"{memory:.0f}" for _, memory in samples[:: max(1, len(samples) // 20)])
    print(f"memory over time, MB: {memory_text}", flush=True)
    return [
        Figure("user actions", "1/min", Percentiles(action_count[0] / seconds * 60)),
        Figure("CPU per action", "ms", Percentiles((gateway.cpu_seconds - cpu) / action_count[0] * 1000)),
        Figure("memory after the warm-up", "MB", Percentiles.of([memory for _, memory in warm])),
        Figure("memory growth", "MB/min", Percentiles(_slope(warm)), None, Percentiles(MAX_GROWTH)),
    ]


async def _simulate_user(client: aiohttp.ClientSession, begin: float, seconds: float, action_count: list[int]) -> None:
    while (at := time.monotonic() - begin) < seconds:
        session = f"m{int(at / 60)}-{random.randrange(SESSIONS)}"
        await random.choice(
            (_send_short_message, _send_short_message, _send_tool_message, _send_and_stop, _send_and_read_events)
        )(client, session)
        action_count[0] += 1


async def _send_short_message(client: aiohttp.ClientSession, session: str) -> None:
    await send_message(client, session, "20 tokens at 100")
    await asyncio.sleep(random.uniform(0, 0.4))


async def _send_tool_message(client: aiohttp.ClientSession, session: str) -> None:
    await send_message(client, session, 'call todo {"action": "list"}')
    await asyncio.sleep(random.uniform(0, 0.4))


async def _send_and_stop(client: aiohttp.ClientSession, session: str) -> None:
    await send_message(client, session, "1000 tokens at 20")
    await asyncio.sleep(random.uniform(0, 0.5))
    await interrupt_turn(client, session)


async def _send_and_read_events(client: aiohttp.ClientSession, session: str) -> None:
    """Send a message, read its events for a moment, and disconnect before the reply ends."""
    async with client.get(f"/api/sessions/{session}/events") as response:
        await send_message(client, session, "40 tokens at 50")
        end = time.monotonic() + random.uniform(0.1, 1.0)
        while time.monotonic() < end and await response.content.readany():
            pass


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line through the points."""
    count = len(points)
    middle_x, middle_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
