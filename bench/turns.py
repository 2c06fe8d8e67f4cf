"""The cost of a turn with a one-token reply, from the message to the durable outcome."""

import asyncio
import time

import hark
from bench.bare_loop import count_chunks, open_http_session
from bench.model import FakeModelServer, open_agent, run_model_server
from bench.run import BenchOptions
from bench.table import Figure, Percentiles

MODEL = "token-1"
TURNS = 2_000
TURNS_PER_SESSION = 10  # a longer transcript would make longer requests, which would distort the measurement
CONCURRENT_SESSIONS = 50


def measure(options: BenchOptions) -> list[Figure]:
    """Run many short turns, in one session at a time and in many sessions concurrently."""
    turns = options.scale(TURNS)
    figures: list[Figure] = []
    with run_model_server() as server:
        bare = {sessions: options.run(_measure_bare(server, sessions, turns)) for sessions in (1, CONCURRENT_SESSIONS)}
        for store, sessions, cpu, wall in (
            ("memory", 1, Percentiles(1.0), None),
            ("memory", CONCURRENT_SESSIONS, Percentiles(1.0), None),
            ("sqlite", 1, None, None),
            ("sqlite", CONCURRENT_SESSIONS, None, Percentiles(2.0)),
        ):
            name = f"{store}, {sessions} concurrent"
            our_cpu, our_wall = options.run(_measure_hark(server, store, sessions, turns))
            bare_cpu, bare_wall = bare[sessions]
            figures.append(Figure(f"{name}: CPU", "ms/turn", Percentiles(our_cpu), Percentiles(bare_cpu), cpu))
            figures.append(Figure(f"{name}: wall", "ms/turn", Percentiles(our_wall), Percentiles(bare_wall), wall))
            figures.append(Figure(f"{name}: rate", "turns/s", Percentiles(1000 / our_wall)))
    return figures


async def _measure_hark(server: FakeModelServer, store: str, sessions: int, turns: int) -> tuple[float, float]:
    async with open_agent(server, MODEL, store) as opened:
        await _run_turns(opened, "warm", sessions)
        cpu, wall = time.process_time(), time.perf_counter()
        turns_per_session = turns // sessions
        await asyncio.gather(*(_run_turns(opened, f"s{number}", turns_per_session) for number in range(sessions)))
        return _ms_per_turn(cpu, wall, turns_per_session * sessions)


async def _run_turns(agent: hark.Agent, name: str, turns: int) -> None:
    for number in range(turns):
        session = agent.session(f"{name}-{number // TURNS_PER_SESSION}")
        await session.say(f"message {number}")
        outcome = await session.idle()
        assert isinstance(outcome, hark.Completed), outcome


async def _measure_bare(server: FakeModelServer, sessions: int, turns: int) -> tuple[float, float]:
    async with open_http_session() as http:

        async def send_requests(count: int) -> None:
            for number in range(count):
                assert await count_chunks(http, server, MODEL, f"message {number}") == 1

        await send_requests(10)
        cpu, wall = time.process_time(), time.perf_counter()
        turns_per_session = turns // sessions
        await asyncio.gather(*(send_requests(turns_per_session) for _ in range(sessions)))
        return _ms_per_turn(cpu, wall, turns_per_session * sessions)


def _ms_per_turn(cpu: float, wall: float, turns: int) -> tuple[float, float]:
    return (time.process_time() - cpu) / turns * 1000, (time.perf_counter() - wall) / turns * 1000
