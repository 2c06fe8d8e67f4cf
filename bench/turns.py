"""What a turn of one token costs, from message to durable end."""

import asyncio
import time

import hark
from bench.bare import open_http, read_all
from bench.model import Server, agent, model_server
from bench.run import Plan
from bench.table import Figure, Spread

MODEL = "token-1"
TURNS = 2_000
TURNS_A_SESSION = 10  # a longer transcript makes a longer request, which is not what is measured
AT_ONCE = 50


def measure(plan: Plan) -> list[Figure]:
    """Take many short turns, one after the other and in many sessions at once."""
    turns = plan.count(TURNS)
    figures: list[Figure] = []
    with model_server() as server:
        bare = {at_once: plan.run(_bare(server, at_once, turns)) for at_once in (1, AT_ONCE)}
        for store, at_once, cpu, wall in (
            ("memory", 1, Spread(1.0), None),
            ("memory", AT_ONCE, Spread(1.0), None),
            ("sqlite", 1, None, None),
            ("sqlite", AT_ONCE, None, Spread(2.0)),
        ):
            name = f"{store}, {at_once} at once"
            our_cpu, our_wall = plan.run(_ours(server, store, at_once, turns))
            bare_cpu, bare_wall = bare[at_once]
            figures.append(Figure(f"{name}: CPU", "ms/turn", Spread(our_cpu), Spread(bare_cpu), cpu))
            figures.append(Figure(f"{name}: wall", "ms/turn", Spread(our_wall), Spread(bare_wall), wall))
            figures.append(Figure(f"{name}: rate", "turns/s", Spread(1000 / our_wall)))
    return figures


async def _ours(server: Server, store: str, at_once: int, turns: int) -> tuple[float, float]:
    async with agent(server, MODEL, store) as opened:
        await _take_turns(opened, "warm", at_once)
        cpu, wall = time.process_time(), time.perf_counter()
        each = turns // at_once
        await asyncio.gather(*(_take_turns(opened, f"s{number}", each) for number in range(at_once)))
        return _per_turn(cpu, wall, each * at_once)


async def _take_turns(opened: hark.Agent, name: str, turns: int) -> None:
    for number in range(turns):
        session = opened.session(f"{name}-{number // TURNS_A_SESSION}")
        await session.say(f"message {number}")
        outcome = await session.idle()
        assert isinstance(outcome, hark.Completed), outcome


async def _bare(server: Server, at_once: int, turns: int) -> tuple[float, float]:
    async with open_http() as http:

        async def ask(count: int) -> None:
            for number in range(count):
                assert await read_all(http, server, MODEL, f"message {number}") == 1

        await ask(10)
        cpu, wall = time.process_time(), time.perf_counter()
        each = turns // at_once
        await asyncio.gather(*(ask(each) for _ in range(at_once)))
        return _per_turn(cpu, wall, each * at_once)


def _per_turn(cpu: float, wall: float, turns: int) -> tuple[float, float]:
    return (time.process_time() - cpu) / turns * 1000, (time.perf_counter() - wall) / turns * 1000
