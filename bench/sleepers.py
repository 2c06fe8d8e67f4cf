"""Ten thousand sessions that were talked to and sleep: what the process holds then, and what it takes to wake one."""

import asyncio
import time

from bench.run import Plan
from bench.served import Gateway, gateway, metric, say, stream_server, until_idle
from bench.table import Figure, Spread

SESSIONS = 10_000
AT_ONCE = 50
WAKES = 100
SETTINGS = "[limits]\nsleep_seconds = 30\n"


def measure(plan: Plan) -> list[Figure]:
    """Say something in each of them, wait until all sleep, then wake some."""
    with stream_server() as base_url, gateway(base_url, settings=SETTINGS) as served:
        figures = plan.run(_measure(served, plan.count(SESSIONS)))
        assert served.end() == 143
    return figures


async def _measure(served: Gateway, count: int) -> list[Figure]:
    start = served.memory_mb
    async with served.client() as client:
        gate = asyncio.Semaphore(AT_ONCE)

        async def begin(session: str) -> None:
            async with gate:
                await say(client, session, f"hello from {session}")

        cpu = served.cpu_seconds
        await asyncio.gather(*(begin(f"s{number}") for number in range(count)))
        await until_idle(client)
        cpu = served.cpu_seconds - cpu
        awake = served.memory_mb
        while await metric(client, "hark_sessions_open"):  # noqa: ASYNC110 another process tells
            await asyncio.sleep(0.5)
        asleep = served.memory_mb
        idle = served.cpu_seconds
        await asyncio.sleep(10)
        idle = (served.cpu_seconds - idle) / 10
        wakes: list[float] = []
        for number in range(0, count, max(1, count // WAKES)):
            asked = time.perf_counter()
            await say(client, f"s{number}", "and again")
            wakes.append((time.perf_counter() - asked) * 1000)
            await until_idle(client)
            async with client.get(f"/api/sessions/s{number}/transcript") as response:
                said = [row["text"] for row in (await response.json())["messages"]]
            assert said[0] == f"hello from s{number}", said
            assert (said[2], len(said)) == ("and again", 4), said
    return [
        Figure("memory at the start", "MB", Spread(start)),
        Figure(f"memory with {count} awake", "MB", Spread(awake)),
        Figure(f"memory with {count} asleep", "MB", Spread(asleep), None, Spread(200)),
        Figure("CPU of a session's first turn", "ms", Spread(cpu / count * 1000)),
        Figure(f"CPU with {count} asleep, of one core", "%", Spread(idle * 100)),
        Figure("a message to a sleeping session, to its receipt", "ms", Spread.of(wakes)),
    ]
