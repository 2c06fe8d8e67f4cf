"""Kill -9 of the gateway under the messages of many chats loses and doubles nothing."""

import asyncio
from pathlib import Path

from tests.gateway_kills.__main__ import run_gateway_kills
from tests.gateway_kills.environment import Plan


def test_nothing_is_lost_or_doubled_when_the_gateway_is_killed_again_and_again(tmp_path: Path) -> None:
    plan = Plan(chats=10, messages=150, kill_seconds=1.0, per_second=40.0, seed=5, seconds=8.0)
    # Not `async`: on a busy machine the gateway's starts alone take longer than the limit of such tests.
    world, findings, _ = asyncio.run(run_gateway_kills(tmp_path / "kills", plan, lambda _: None))
    assert findings.problems == []
    assert world.gateway.kills > 0
    assert findings.counts["in a prompt"] > 0
    assert findings.counts["replies delivered"] > 0
