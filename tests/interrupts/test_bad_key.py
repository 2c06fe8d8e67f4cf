"""The same bad request hundreds of times: as many cheap errors, and nothing grows or is started anew."""

import asyncio
import gc
import os
import time
from pathlib import Path

from hark.engine.turn.turn import Turn
from hark.protocol.events import Notice, RouteChanged, TurnEnd
from hark.protocol.outcomes import Completed, Failed
from tests.fakes.models.behaviours import failing, text
from tests.interrupts.agents import conversing
from tests.waiting import at_most

TURNS = int(os.environ.get("HARK_BAD_KEY_TURNS", "300"))


def living(kind: type) -> int:
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


async def test_hundreds_of_turns_with_a_bad_key_are_as_many_cheap_errors(tmp_path: Path) -> None:
    script = [failing(401, words="no such key")] * TURNS
    milliseconds: list[float] = []
    before = living(Turn)
    async with conversing(tmp_path, "openai", [*script, text(["well."])], None) as talk:
        tasks = 0
        for number in range(TURNS):
            began = time.perf_counter()
            outcome = await talk.ask("go")
            milliseconds.append((time.perf_counter() - began) * 1000)
            assert isinstance(outcome, Failed)
            assert outcome.error.code == "bad_key"
            assert "no such key" in outcome.error.message
            if number == 10:
                tasks = len(asyncio.all_tasks())
        assert len(asyncio.all_tasks()) == tasks
        assert living(Turn) <= before + 1  # the last one
        assert len(talk.server.requests) == TURNS
        assert talk.server.connection_count == 1
        assert talk.all(Notice) == []
        assert talk.all(RouteChanged) == []
        assert await talk.ask("and now?") == Completed("well.")
        assert len(talk.all(TurnEnd)) == TURNS + 1
    assert sorted(milliseconds)[TURNS // 2] < 1000 * at_most(0.025)
