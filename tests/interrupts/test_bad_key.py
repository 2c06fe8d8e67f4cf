"""Hundreds of turns with a bad API key fail cheaply, without retries, notices or memory growth."""

import asyncio
import gc
import os
import time
from pathlib import Path

from hark.engine.turn.turn import Turn
from hark.protocol.events import Notice, RouteChanged, TurnEnd
from hark.protocol.outcomes import Completed, Failed
from tests.fakes.models.behaviours import failing, text
from tests.interrupts.agents import open_conversation
from tests.waiting import at_most

TURNS = int(os.environ.get("HARK_BAD_KEY_TURNS", "300"))


def count_live_objects(kind: type) -> int:
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


async def test_hundreds_of_turns_with_a_bad_key_fail_quickly_without_leaks(tmp_path: Path) -> None:
    script = [failing(401, message="no such key")] * TURNS
    milliseconds: list[float] = []
    before = count_live_objects(Turn)
    async with open_conversation(tmp_path, "openai", [*script, text(["well."])], None) as talk:
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
        assert count_live_objects(Turn) <= before + 1  # the last turn
        assert len(talk.server.requests) == TURNS
        assert talk.server.connection_count == 1
        assert talk.events_of(Notice) == []
        assert talk.events_of(RouteChanged) == []
        assert await talk.ask("and now?") == Completed("well.")
        assert len(talk.events_of(TurnEnd)) == TURNS + 1
    assert sorted(milliseconds)[TURNS // 2] < 1000 * at_most(0.025)
