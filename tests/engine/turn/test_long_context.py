"""The cost of a step in a long context grows only with the size of the request."""

import statistics
import time
from collections.abc import AsyncGenerator
from itertools import pairwise

from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Chunk, EndChunk, Request, TextChunk
from tests.engine.engine_fixture import make_services, quick_tool, run_session

STEPS = 45
CONTEXT = "x" * 200_000


class TimedProvider:
    """A fake model that calls a tool at each step, and records the CPU time of each request."""

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

    def step_seconds(self, step: int) -> float:
        """Return the median CPU time of the steps around this one, to reduce distortion by garbage collection."""
        times = [after - before for before, after in pairwise(self.seconds)]
        return statistics.median(times[step - 4 : step + 4])


async def test_step_40_uses_less_than_three_times_the_cpu_time_of_step_20() -> None:
    provider = TimedProvider()
    async with run_session(make_services(provider, tools=[quick_tool(text="y" * 2_000)])) as user:
        await user.say(CONTEXT)
        assert await user.proxy.idle() == Completed("done")
    assert len(provider.seconds) == STEPS
    assert provider.step_seconds(40) < 3 * provider.step_seconds(20)
    assert provider.step_seconds(40) < 0.01
