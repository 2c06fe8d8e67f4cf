"""Killing the gateway with SIGKILL under load neither loses nor duplicates messages."""

from pathlib import Path

import pytest

from tests.gateway_kills.__main__ import run_gateway_kills
from tests.gateway_kills.environment import Plan


@pytest.mark.time_limit(180, reason="starts and kills the gateway several times, with hundreds of messages")
async def test_repeated_kills_of_the_gateway_neither_lose_nor_duplicate_messages(tmp_path: Path) -> None:
    plan = Plan(chats=10, messages=150, kill_seconds=1.0, per_second=40.0, seed=5, seconds=8.0)
    environment, findings, _ = await run_gateway_kills(tmp_path / "kills", plan, lambda _: None)
    assert findings.problems == []
    assert environment.gateway.kills > 0
    assert findings.counts["in a prompt"] > 0
    assert findings.counts["replies delivered"] > 0
