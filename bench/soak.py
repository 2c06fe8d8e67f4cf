"""`python -m bench soak --minutes 10`: mixed traffic through `hark serve`, and whether its memory stays flat."""

import asyncio
import random
import time

import aiohttp

from bench.run import Plan
from bench.served import Gateway, gateway, interrupt, say, stream_server, until_idle
from bench.table import Figure, Spread

PEOPLE = 20
SESSIONS = 100  # of each minute; those of the minutes before sleep
WARM_SHARE = 0.3  # of the time, after which memory is to be flat
SAMPLE_SECONDS = 2.0
SETTINGS = "[limits]\nsleep_seconds = 6\n"
FLAT = 2.0  # MB a minute


def measure(plan: Plan) -> list[Figure]:
    """Let people talk, stop, read along and leave for some minutes."""
    with stream_server() as base_url, gateway(base_url, settings=SETTINGS) as served:
        figures = plan.run(_measure(served, plan.minutes * 60))
        assert served.end() == 143
    return figures


async def _measure(served: Gateway, seconds: float) -> list[Figure]:
    begin, done, samples = time.monotonic(), [0], list[tuple[float, float]]()
    async with served.client() as client, asyncio.TaskGroup() as people:
        cpu = served.cpu_seconds
        for _ in range(PEOPLE):
            people.create_task(_person(client, begin, seconds, done))
        while (at := time.monotonic() - begin) < seconds:
            samples.append((at / 60, served.memory_mb))
            await asyncio.sleep(SAMPLE_SECONDS)
    async with served.client() as client:
        await until_idle(client)
    warm = [(at, memory) for at, memory in samples if at * 60 > seconds * WARM_SHARE]
    marks = ", ".join(f"{memory:.0f}" for _, memory in samples[:: max(1, len(samples) // 20)])
    print(f"memory over time, MB: {marks}", flush=True)
    return [
        Figure("what people did", "1/min", Spread(done[0] / seconds * 60)),
        Figure("CPU of each", "ms", Spread((served.cpu_seconds - cpu) / done[0] * 1000)),
        Figure("memory, behind the warm-up", "MB", Spread.of([memory for _, memory in warm])),
        Figure("growth of memory", "MB/min", Spread(_slope(warm)), None, Spread(FLAT)),
    ]


async def _person(client: aiohttp.ClientSession, begin: float, seconds: float, done: list[int]) -> None:
    while (at := time.monotonic() - begin) < seconds:
        session = f"m{int(at / 60)}-{random.randrange(SESSIONS)}"
        await random.choice((_talk, _talk, _use_a_tool, _stop, _read_along))(client, session)
        done[0] += 1


async def _talk(client: aiohttp.ClientSession, session: str) -> None:
    await say(client, session, "20 tokens at 100")
    await asyncio.sleep(random.uniform(0, 0.4))


async def _use_a_tool(client: aiohttp.ClientSession, session: str) -> None:
    await say(client, session, 'call todo {"action": "list"}')
    await asyncio.sleep(random.uniform(0, 0.4))


async def _stop(client: aiohttp.ClientSession, session: str) -> None:
    await say(client, session, "1000 tokens at 20")
    await asyncio.sleep(random.uniform(0, 0.5))
    await interrupt(client, session)


async def _read_along(client: aiohttp.ClientSession, session: str) -> None:
    """Read for a moment, and leave in the middle."""
    async with client.get(f"/api/sessions/{session}/events") as response:
        await say(client, session, "40 tokens at 50")
        end = time.monotonic() + random.uniform(0.1, 1.0)
        while time.monotonic() < end and await response.content.readany():
            pass


def _slope(points: list[tuple[float, float]]) -> float:
    """Return by how much the second number grows with the first, by least squares."""
    count = len(points)
    middle_x, middle_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
