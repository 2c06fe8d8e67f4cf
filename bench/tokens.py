"""What a streamed token costs in CPU, with one reader of events; the bare loop speaks chat completions."""

import asyncio
import gc
import time

import hark
from bench.bare import open_http, read_all
from bench.model import Server, agent, model_server
from bench.run import Plan
from bench.table import Figure, Spread
from hark.protocol.events import ReplyDelta, TurnEnd

TARGET = Spread(15.0)
LOADS = (
    # name, protocol, streams, tokens of each, per second (0: as fast as it goes), target
    ("chat, in bulk, 50 streams", "openai", 50, 2_000, 0, TARGET),
    ("chat, in bulk, 1 stream", "openai", 1, 50_000, 0, TARGET),
    ("responses, in bulk, 1 stream", "responses", 1, 50_000, 0, TARGET),
    ("anthropic, in bulk, 1 stream", "anthropic", 1, 50_000, 0, TARGET),
    ("chat, one by one, 100 streams at 40/s", "openai", 100, 200, 40, None),
)


def measure(plan: Plan) -> list[Figure]:
    """Stream a lot, with Hark and with a bare loop."""
    figures: list[Figure] = []
    for name, protocol, streams, tokens, rate, target in LOADS:
        count = plan.count(tokens)
        model = f"stream-{count}@{rate}"
        with model_server() as server:
            ours = plan.run(_ours(server, model, protocol, streams, count))
            bare = plan.run(_bare(server, model, streams, count))
        figures.append(Figure(name, "µs/token", Spread(ours), Spread(bare), target))
    return figures


async def _ours(server: Server, model: str, protocol: str, streams: int, tokens: int) -> float:
    async with agent(server, model, provider=protocol) as opened:
        sessions = [opened.session(f"s{number}") for number in range(streams)]
        await asyncio.gather(*(session.transcript() for session in sessions))  # loaded
        gc.collect()
        start = time.process_time()
        read = await asyncio.gather(*(_read(session) for session in sessions))
        spent = time.process_time() - start
    assert read == [tokens] * streams
    return spent / (streams * tokens) * 1e6


async def _read(session: hark.SessionHandle) -> int:
    """Return how many tokens came, however the events brought them."""
    events = session.events()
    await session.say("go")
    text: list[str] = []
    async for event in events:
        if isinstance(event, ReplyDelta):
            text.append(event.text)
        elif isinstance(event, TurnEnd):
            break
    return "".join(text).count("tok")


async def _bare(server: Server, model: str, streams: int, tokens: int) -> float:
    async with open_http() as http:
        gc.collect()
        start = time.process_time()
        read = await asyncio.gather(*(read_all(http, server, model, "go") for _ in range(streams)))
        spent = time.process_time() - start
    assert read == [tokens] * streams
    return spent / (streams * tokens) * 1e6
