"""A context of 200 kB over each API: no step costs much more than the one before it."""

import statistics
import time
from itertools import pairwise
from pathlib import Path

from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, EndChunk
from tests.fakes.models.behaviours import Exchange, reply, text
from tests.interrupts.agents import conversing, each_provider

STEPS = 45


@each_provider
async def test_step_forty_of_a_long_context_costs_less_than_three_times_what_step_twenty_costs(
    provider: str, tmp_path: Path
) -> None:
    marks: list[float] = []

    async def calling(exchange: Exchange) -> None:
        marks.append(time.process_time())
        await reply([CallChunk(0, f"c{len(marks)}", "look", "{}"), EndChunk("calls")])(exchange)

    async with conversing(tmp_path, provider, [*[calling] * STEPS, text(["done."])], None) as talk:
        assert await talk.ask("x" * 200_000) == Completed("done.")
    costs = [after - before for before, after in pairwise(marks)]
    twenty, forty = statistics.median(costs[16:24]), statistics.median(costs[36:44])
    assert forty < 3 * twenty
