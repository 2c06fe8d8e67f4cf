"""A long context: what a step costs grows with what is sent, and with nothing else."""

import statistics
import time
from collections.abc import AsyncGenerator
from itertools import pairwise

from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Chunk, EndChunk, Request, TextChunk
from tests.engine.engine_fixture import make_bench, quick_tool, running

STEPS = 45
CONTEXT = "x" * 200_000


class Clocked:
    """A model that calls a tool at each step, and notes the CPU time at each."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        self.seconds.append(time.process_time())
        if len(self.seconds) == STEPS:
            yield TextChunk("done")
            yield EndChunk()
            return
        for piece in range(20):
            yield TextChunk(f"word {piece} ")
        yield CallChunk(0, f"c{len(self.seconds)}", "look", "{}")
        yield EndChunk("calls")

    def cost(self, step: int) -> float:
        """The CPU time of the steps around this one: the median is deaf to a pause of the collector."""
        times = [after - before for before, after in pairwise(self.seconds)]
        return statistics.median(times[step - 4 : step + 4])


async def test_step_forty_costs_less_than_three_times_what_step_twenty_costs() -> None:
    provider = Clocked()
    async with running(make_bench(provider, tools=[quick_tool(text="y" * 2_000)])) as person:
        await person.say(CONTEXT)
        assert await person.door.idle() == Completed("done")
    assert len(provider.seconds) == STEPS
    assert provider.cost(40) < 3 * provider.cost(20)
    assert provider.cost(40) < 0.01
