"""Draining: the running turn finishes, no new turn starts, and queued messages remain for the next owner."""

import asyncio
from pathlib import Path

import anyio

import hark
from hark.app.build import open_agent
from hark.protocol.records import TurnEnded
from tests.cli.command_line import gated
from tests.fakes.models.behaviours import echo
from tests.fakes.models.server import ModelServer


async def test_drain_waits_for_the_running_turn_and_starts_no_other(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with ModelServer([gated(gate, "done"), echo(), echo()]) as model:
        route = {"base_url": model.base_url, "model": "fake"}
        async with open_agent(home=tmp_path, routes=[route]) as agent:
            ends: list[TurnEnded] = []
            agent.engine.turn_ended.add(ends.append)
            session = agent.session("demo")
            await session.say("long")
            await model.request(1)
            await session.say("next", "queue", id="b")
            draining = asyncio.create_task(agent.drain())
            with anyio.move_on_after(0.05):
                await asyncio.shield(draining)
            assert not draining.done()
            gate.set()
            await draining
            assert (agent.open_sessions, [end.turn for end in ends], len(model.requests)) == ([], ["demo.t1"], 1)
            assert (await agent.session("idle").say("later")).state == "queued"
        async with hark.open(home=tmp_path, routes=[route]) as agent:
            await agent.session("demo").idle()
            assert len(model.requests) >= 2
