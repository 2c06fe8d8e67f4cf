"""CPU per streamed token, with one event reader. The bare loop uses the chat completions API."""

import asyncio
import gc
import time

import hark
from bench.bare_loop import count_chunks, open_http_session
from bench.model import FakeModelServer, open_agent, run_model_server
from bench.run import BenchOptions
from bench.table import Figure, Percentiles
from hark.protocol.events import ReplyDelta, TurnEnd

TARGET = Percentiles(15.0)
LOADS = (
    # name, protocol, streams, tokens per stream, tokens per second (0: unlimited), target
    ("chat, unlimited rate, 50 streams", "openai", 50, 2_000, 0, TARGET),
    ("chat, unlimited rate, 1 stream", "openai", 1, 50_000, 0, TARGET),
    ("responses, unlimited rate, 1 stream", "responses", 1, 50_000, 0, TARGET),
    ("anthropic, unlimited rate, 1 stream", "anthropic", 1, 50_000, 0, TARGET),
    ("chat, 100 streams at 40 tokens/s", "openai", 100, 200, 40, None),
)


def measure(options: BenchOptions) -> list[Figure]:
    """Stream many tokens, with Hark and with the bare loop."""
    figures: list[Figure] = []
    for name, protocol, streams, tokens, rate, target in LOADS:
        count = options.scale(tokens)
        model = f"stream-{count}@{rate}"
        with run_model_server() as server:
            ours = options.run(_measure_hark(server, model, protocol, streams, count))
            bare = options.run(_measure_bare(server, model, streams, count))
        figures.append(Figure(name, "µs/token", Percentiles(ours), Percentiles(bare), target))
    return figures


async def _measure_hark(server: FakeModelServer, model: str, protocol: str, streams: int, tokens: int) -> float:
    async with open_agent(server, model, provider=protocol) as opened:
        sessions = [opened.session(f"s{number}") for number in range(streams)]
        await asyncio.gather(*(session.transcript() for session in sessions))  # loads the sessions
        gc.collect()
        start = time.process_time()
        counts = await asyncio.gather(*(_count_tokens(session) for session in sessions))
        cpu_seconds = time.process_time() - start
    assert counts == [tokens] * streams
    return cpu_seconds / (streams * tokens) * 1e6


async def _count_tokens(session: hark.SessionHandle) -> int:
    """Send a message. Return the number of tokens in its reply, counted in the text of the events."""
    events = session.events()
    await session.say("go")
    text: list[str] = []
    async for event in events:
        if isinstance(event, ReplyDelta):
            text.append(event.text)
        elif isinstance(event, TurnEnd):
            break
    return "".join(text).count("tok")


async def _measure_bare(server: FakeModelServer, model: str, streams: int, tokens: int) -> float:
    async with open_http_session() as http:
        gc.collect()
        start = time.process_time()
        counts = await asyncio.gather(*(count_chunks(http, server, model, "go") for _ in range(streams)))
        cpu_seconds = time.process_time() - start
    assert counts == [tokens] * streams
    return cpu_seconds / (streams * tokens) * 1e6
