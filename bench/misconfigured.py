"""A model that is set up wrongly, and a thousand messages: CPU of each, memory, and how often MCP servers start."""

import json
import re
import sys
import time
from pathlib import Path

from bench.run import Plan
from bench.served import Gateway, gateway, metric, say, stream_server
from bench.table import Figure, Spread

MESSAGES = 1_000
SMALL_SERVER = Path(__file__).parent.parent / "tests" / "mcp" / "small_server.py"
SECOND = '[[routes]]\nname = "second"\nbase_url = "{base_url}"\nmodel = "404"\n'
KINDS = {
    # what is wrong: base_url (with that of a server that runs), model, how many chats, another route
    "a bad key, one chat": ("{base_url}", "401", 1, ""),
    "a bad key and then no such model, one chat": ("{base_url}", "401", 1, SECOND),
    "no such model, 100 chats": ("{base_url}", "404", 100, ""),
    "nobody listens, one chat": ("http://127.0.0.1:9/v1", "fast", 1, ""),
    "no such host, one chat": ("http://no-such-host.invalid/v1", "fast", 1, ""),
}


def measure(plan: Plan) -> list[Figure]:
    """Send the messages one by one, each when the one before has got its error."""
    figures: list[Figure] = []
    with stream_server() as base_url:
        for name, (url, model, chats, more) in KINDS.items():
            settings = f"[mcp.servers.small]\ncommand = {json.dumps(sys.executable)}\nargs = {_ARGUMENTS}\n"
            settings += more.format(base_url=base_url)
            with gateway(url.format(base_url=base_url), model, settings) as served:
                figures += plan.run(_measure(served, plan.count(MESSAGES), name, chats))
                assert served.end() == 143
    return figures


async def _measure(served: Gateway, count: int, name: str, chats: int) -> list[Figure]:
    async with served.client() as client:
        await _fails(served, count // 5, chats)  # what is loaded once is loaded
        cpu, memory, times = served.cpu_seconds, [served.memory_mb], list[float]()
        for number in (count // 10, count * 4 // 10, count // 2):
            times += await _fails(served, number, chats)
            memory.append(served.memory_mb)
        cpu = served.cpu_seconds - cpu
        assert await metric(client, 'hark_turns_total{outcome="failed"}') == count + count // 5
        async with client.get("/api/status") as response:
            server = (await response.json())["mcp"][0]
    assert (server["state"], server["restarts"]) == ("connected", 0), server
    return [
        Figure(f"{name}: CPU of a message", "ms", Spread(cpu / count * 1000), None, Spread(5)),
        Figure(f"{name}: from message to error", "ms", Spread.of(times)),
        *(
            Figure(f"{name}: memory, after {number} more", "MB more", Spread(after - memory[0]))
            for number, after in zip((count // 10, count // 2, count), memory[1:], strict=True)
        ),
    ]


async def _fails(served: Gateway, count: int, chats: int) -> list[float]:
    """Return how long each message took to get its error, as somebody sees it who reads the events."""
    times: list[float] = []
    async with served.client() as client:
        streams = [await client.get(f"/api/sessions/s{chat}/events", timeout=None) for chat in range(chats)]
        for number in range(count):
            chat = number % chats
            asked = time.perf_counter()
            await say(client, f"s{chat}", f"message {number}")
            async for line in streams[chat].content:
                if found := re.match(rb'data: .*"type":"turn.ended".*"outcome":(.*)', line):
                    assert b'"type":"failed"' in found[1], line
                    break
            times.append((time.perf_counter() - asked) * 1000)
        for stream in streams:
            stream.close()
    return times


_ARGUMENTS = json.dumps([str(SMALL_SERVER)])
