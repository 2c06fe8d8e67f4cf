"""From interrupt to the turn's end, and to the moment when the server sees the connection close."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable

import aiohttp

import hark
from bench.bare import bare_store, open_http, read_all
from bench.model import Server, agent, model_server
from bench.run import Plan
from bench.table import Figure, Spread
from hark.protocol.events import AnyEvent, Event, ReplyDelta, StepStart

MODELS = {"streaming": "stream-100000@200", "silent": "silent", "black hole": "blackhole"}
STORES = ("memory", "sqlite")
ROUNDS = 300
ROUNDS_A_SESSION = 20
SOME_MS = (3.0, 12.0)  # into the stream, so that an interrupt meets it at any point
TARGET = Spread(1.5, 10.0)

Times = dict[str, tuple[float, float]]  # by the message's text: when the interrupt was called, and when it returned


def measure(plan: Plan) -> list[Figure]:
    """Interrupt each kind of stream many times, a bare loop in turns with Hark."""
    figures: list[Figure] = []
    for store in STORES:
        for name, model in MODELS.items():
            with model_server() as server, bare_store(store) as note:
                figures += plan.run(_measure(server, f"{name}, {store}", model, store, plan.count(ROUNDS), note))
    return figures


async def _measure(
    server: Server, name: str, model: str, store: str, rounds: int, note: Callable[[str], None]
) -> list[Figure]:
    sign = ReplyDelta if model.startswith("stream") else StepStart
    ours: Times = {}
    bare: Times = {}
    async with agent(server, model, store) as opened, open_http() as http:
        for first in range(0, rounds, ROUNDS_A_SESSION):
            session = opened.session(f"s{first}")
            events = session.events()
            for number in range(first, min(first + ROUNDS_A_SESSION, rounds)):
                ours[f"ours {number}"] = await _interrupt(session, events, f"ours {number}", sign)
                bare[f"bare {number}"] = await _cancel(http, server, model, f"bare {number}", note)
        await asyncio.sleep(0.2)  # what should not be asked after a stop would be asked by now
        left = _left(server)
    return [
        Figure(f"{name}: to the end", "ms", _to_end(ours), _to_end(bare), TARGET),
        Figure(f"{name}: to the server", "ms", _to_close(ours, left), _to_close(bare, left), TARGET),
    ]


async def _interrupt(
    session: hark.SessionHandle, events: AsyncIterator[AnyEvent], text: str, sign: type[Event]
) -> tuple[float, float]:
    """Say something, interrupt it a while after the first sign of life."""
    receipt = await session.say(text)
    async for event in events:
        if isinstance(event, sign) and event.turn == receipt.turn:
            break
    await asyncio.sleep(random.uniform(*SOME_MS) / 1000)
    called = time.perf_counter()
    settled = await session.interrupt()
    ended = time.perf_counter()
    assert settled is not None
    assert isinstance(settled.outcome, hark.Interrupted)
    return called, ended


async def _cancel(
    http: aiohttp.ClientSession, server: Server, model: str, text: str, note: Callable[[str], None]
) -> tuple[float, float]:
    """Do the same to a task that reads the stream, and note its end as durably."""
    task = asyncio.create_task(read_all(http, server, model, text))
    await asyncio.sleep(random.uniform(*SOME_MS) / 1000 + 0.002)
    called = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    note(text)
    return called, time.perf_counter()


def _left(server: Server) -> dict[str, float]:
    """Return when the server saw each client leave, by the message: none is asked twice, for a stop is no failure."""
    requests = server.requests()
    left = {request["body"]["messages"][-1]["content"]: request["left"] for request in requests}
    assert len(left) == len(requests), "a message was asked again after its stop"
    assert None not in left.values(), "a connection was not closed"
    return left


def _to_end(times: Times) -> Spread:
    return Spread.of([(ended - called) * 1000 for called, ended in times.values()])


def _to_close(times: Times, left: dict[str, float]) -> Spread:
    # A message that was cut before its request arrived is not among them.
    return Spread.of([(left[text] - called) * 1000 for text, (called, _) in times.items() if text in left])
