"""A misconfigured model and a thousand messages: CPU per message, memory, and restarts of MCP servers."""

import json
import re
import sys
import time
from pathlib import Path

from bench.gateway_process import GatewayProcess, read_metric, run_gateway, run_stream_server, send_message
from bench.run import BenchOptions
from bench.table import Figure, Percentiles

MESSAGES = 1_000
SMALL_SERVER = Path(__file__).parent.parent / "tests" / "mcp" / "small_server.py"
SECOND_ROUTE = '[[routes]]\nname = "second"\nbase_url = "{base_url}"\nmodel = "404"\n'
CASES = {
    # by fault: base_url (with a placeholder for the running server), model, number of chats, further settings
    "wrong key, one chat": ("{base_url}", "401", 1, ""),
    "wrong key, then unknown model, one chat": ("{base_url}", "401", 1, SECOND_ROUTE),
    "unknown model, 100 chats": ("{base_url}", "404", 100, ""),
    "connection refused, one chat": ("http://127.0.0.1:9/v1", "fast", 1, ""),
    "unknown host, one chat": ("http://no-such-host.invalid/v1", "fast", 1, ""),
}


def measure(options: BenchOptions) -> list[Figure]:
    """Send messages that fail, for each misconfiguration. Measure the time to each error, the CPU and the memory."""
    figures: list[Figure] = []
    with run_stream_server() as base_url:
        for name, (url, model, chats, extra_settings) in CASES.items():
            settings = f"[mcp.servers.small]\ncommand = {json.dumps(sys.executable)}\nargs = {_ARGUMENTS}\n"
            settings += extra_settings.format(base_url=base_url)
            with run_gateway(url.format(base_url=base_url), model, settings) as running_gateway:
                figures += options.run(_measure(running_gateway, options.scale(MESSAGES), name, chats))
                assert running_gateway.terminate() == 143
    return figures


async def _measure(gateway: GatewayProcess, count: int, name: str, chats: int) -> list[Figure]:
    async with gateway.client() as client:
        await _send_failing_messages(gateway, count // 5, chats)  # warm up
        cpu, memory, times = gateway.cpu_seconds, [gateway.memory_mb], list[float]()
        for number in (count // 10, count * 4 // 10, count // 2):
            times += await _send_failing_messages(gateway, number, chats)
            memory.append(gateway.memory_mb)
        cpu = gateway.cpu_seconds - cpu
        assert await read_metric(client, 'hark_turns_total{outcome="failed"}') == count + count // 5
        async with client.get("/api/status") as response:
            server = (await response.json())["mcp"][0]
    assert (server["state"], server["restarts"]) == ("connected", 0), server
    return [
        Figure(f"{name}: CPU per message", "ms", Percentiles(cpu / count * 1000), None, Percentiles(5)),
        Figure(f"{name}: message to error", "ms", Percentiles.of(times)),
        *(
            Figure(f"{name}: memory growth after {number} messages", "MB", Percentiles(after - memory[0]))
            for number, after in zip((count // 10, count // 2, count), memory[1:], strict=True)
        ),
    ]


async def _send_failing_messages(gateway: GatewayProcess, count: int, chats: int) -> list[float]:
    """Send messages that fail. Return the time from each message to its error, as an event reader sees it."""
    times: list[float] = []
    async with gateway.client() as client:
        streams = [await client.get(f"/api/sessions/s{chat}/events", timeout=None) for chat in range(chats)]
        for number in range(count):
            chat = number % chats
            started = time.perf_counter()
            await send_message(client, f"s{chat}", f"message {number}")
            async for line in streams[chat].content:
                if match := re.match(rb'data: .*"type":"turn.ended".*"outcome":(.*)', line):
                    assert b'"type":"failed"' in match[1], line
                    break
            times.append((time.perf_counter() - started) * 1000)
        for stream in streams:
            stream.close()
    return times


_ARGUMENTS = json.dumps([str(SMALL_SERVER)])
