"""The cost per step stays flat with a context of 200 kB, on each API."""

import statistics
import time
from itertools import pairwise
from pathlib import Path

from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, EndChunk
from tests.fakes.models.behaviours import Exchange, reply, text
from tests.interrupts.agents import each_provider, open_conversation

STEPS = 45


@each_provider
async def test_step_40_of_a_long_context_uses_less_than_three_times_the_cpu_time_of_step_20(
    provider: str, tmp_path: Path
) -> None:
    times: list[float] = []

    async def reply_with_call(exchange: Exchange) -> None:
        times.append(time.process_time())
        await reply([CallChunk(0, f"c{len(times)}", "look", "{}"), EndChunk("calls")])(exchange)

    async with open_conversation(tmp_path, provider, [*[reply_with_call] * STEPS, text(["done."])], None) as talk:
        assert await talk.ask("x" * 200_000) == Completed("done.")
    costs = [after - before for before, after in pairwise(times)]
    twenty, forty = statistics.median(costs[16:24]), statistics.median(costs[36:44])
    assert forty < 3 * twenty
