"""The time from an interrupt to the end of the turn, and until the model server sees the connection close."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable

import aiohttp

import hark
from bench.bare_loop import count_chunks, open_bare_store, open_http_session
from bench.model import FakeModelServer, open_agent, run_model_server
from bench.run import BenchOptions
from bench.table import Figure, Percentiles
from hark.protocol.events import AnyEvent, Event, ReplyDelta, StepStart

MODELS = {"streaming": "stream-100000@200", "silent": "silent", "black hole": "blackhole"}
STORES = ("memory", "sqlite")
ROUNDS = 300
ROUNDS_PER_SESSION = 20
DELAY_RANGE_MS = (3.0, 12.0)  # milliseconds into the stream, random so that interrupts arrive at any point
TARGET = Percentiles(1.5, 10.0)

Times = dict[str, tuple[float, float]]  # by message text: the times when the interrupt was called and when it returned


def measure(options: BenchOptions) -> list[Figure]:
    """Interrupt each kind of stream many times, alternating between Hark and a bare loop."""
    figures: list[Figure] = []
    for store in STORES:
        for name, model in MODELS.items():
            with run_model_server() as server, open_bare_store(store) as write_line:
                figures += options.run(
                    _measure(server, f"{name}, {store}", model, store, options.scale(ROUNDS), write_line)
                )
    return figures


async def _measure(
    server: FakeModelServer, name: str, model: str, store: str, rounds: int, write_line: Callable[[str], None]
) -> list[Figure]:
    first_event_type = ReplyDelta if model.startswith("stream") else StepStart
    hark_times: Times = {}
    bare_times: Times = {}
    async with open_agent(server, model, store) as opened, open_http_session() as http:
        for first in range(0, rounds, ROUNDS_PER_SESSION):
            session = opened.session(f"s{first}")
            events = session.events()
            for number in range(first, min(first + ROUNDS_PER_SESSION, rounds)):
                hark_times[f"ours {number}"] = await _interrupt_turn(
                    session, events, f"ours {number}", first_event_type
                )
                bare_times[f"bare {number}"] = await _cancel_bare(http, server, model, f"bare {number}", write_line)
        await asyncio.sleep(0.2)  # a wrong request after a stop would have arrived by now
        disconnect_times = _read_disconnect_times(server)
    return [
        Figure(f"{name}: to the end of the turn", "ms", _times_to_end(hark_times), _times_to_end(bare_times), TARGET),
        Figure(
            f"{name}: to the disconnect at the server",
            "ms",
            _times_to_disconnect(hark_times, disconnect_times),
            _times_to_disconnect(bare_times, disconnect_times),
            TARGET,
        ),
    ]


async def _interrupt_turn(
    session: hark.SessionHandle, events: AsyncIterator[AnyEvent], text: str, first_event_type: type[Event]
) -> tuple[float, float]:
    """Send a message and interrupt its turn some milliseconds after the turn's first event of `first_event_type`."""
    receipt = await session.say(text)
    async for event in events:
        if isinstance(event, first_event_type) and event.turn == receipt.turn:
            break
    await asyncio.sleep(random.uniform(*DELAY_RANGE_MS) / 1000)
    started = time.perf_counter()
    settled = await session.interrupt()
    ended = time.perf_counter()
    assert settled is not None
    assert isinstance(settled.outcome, hark.Interrupted)
    return started, ended


async def _cancel_bare(
    http: aiohttp.ClientSession, server: FakeModelServer, model: str, text: str, write_line: Callable[[str], None]
) -> tuple[float, float]:
    """Cancel a task that reads the stream, and store a line as durably as Hark. Return the start and end times."""
    task = asyncio.create_task(count_chunks(http, server, model, text))
    await asyncio.sleep(random.uniform(*DELAY_RANGE_MS) / 1000 + 0.002)
    started = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    write_line(text)
    return started, time.perf_counter()


def _read_disconnect_times(server: FakeModelServer) -> dict[str, float]:
    """Return the time at which the server saw each client disconnect, by message. Fails if a message was retried."""
    requests = server.requests()
    left = {request["body"]["messages"][-1]["content"]: request["left"] for request in requests}
    assert len(left) == len(requests), "a message was sent again after its stop"
    assert None not in left.values(), "a connection was not closed"
    return left


def _times_to_end(times: Times) -> Percentiles:
    return Percentiles.of([(ended - called) * 1000 for called, ended in times.values()])


def _times_to_disconnect(times: Times, disconnect_times: dict[str, float]) -> Percentiles:
    # A message that was interrupted before its request arrived has no disconnect time.
    return Percentiles.of(
        [(disconnect_times[text] - called) * 1000 for text, (called, _) in times.items() if text in disconnect_times]
    )
