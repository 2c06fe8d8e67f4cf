"""`hark serve` with background work and last-moment steers, used through its HTTP API."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from hark.protocol.provider import CallChunk, EndChunk
from tests.cli.command_line import Hark, gated, open_hark
from tests.cli.serve.gateway_fixture import ServedGateway, serve_gateway
from tests.fakes.models.behaviours import Exchange, reply, text
from tests.waiting import until

GOALS = ("count the files", "read the log")
JOB = "until [ -e go ]; do sleep 0.05; done; echo built"


class Worker:
    """A model that delegates twice and starts a process. Its children wait for `release`."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.started: set[str] = set()

    async def play(self, exchange: Exchange) -> None:
        messages = [one for one in exchange.request.body["messages"] if one["role"] != "system"]
        first = str(messages[0]["content"])
        answer = text(["noted"])
        if first in GOALS:
            self.started.add(first)
            await self.release.wait()
            answer = text([f"result of {first}"])
        elif not any(one["role"] == "tool" for one in messages):
            goals = [json.dumps({"goal": goal}) for goal in GOALS]
            start = json.dumps({"action": "start", "name": "job", "command": JOB})
            calls = [CallChunk(index, f"call{index}", "delegate", goal) for index, goal in enumerate(goals)]
            answer = reply([*calls, CallChunk(2, "call2", "process", start), EndChunk("calls")])
        await answer(exchange)


@asynccontextmanager
async def open_worker(tmp_path: Path) -> AsyncGenerator[tuple[Hark, Worker]]:
    worker = Worker()
    async with open_hark(tmp_path, [worker.play] * 200) as hark:
        (hark.home / "serve.json").write_text(json.dumps({"serve": {"port": 0}, "approvals": {"mode": "all"}}))
        try:
            yield hark, worker
        finally:
            worker.release.set()


async def start_work(served: ServedGateway, worker: Worker) -> None:
    """Start two children and a process, then interrupt the turn 20 times."""
    await served.say("demo", "do both")
    await until(lambda: len(worker.started) == 2)
    for number in range(20):
        await served.say("demo", f"how is it going? {number}")
    await until(lambda: is_idle(served))


async def is_idle(served: ServedGateway) -> bool:
    _, status = await served.call("GET", "/api/status")
    return not any(row["session"] == "demo" for row in status["running"])


async def reports(served: ServedGateway, *words: str) -> list[int]:
    """Return for each of `words` how many messages contain it."""
    texts = await served.texts("demo")
    return [sum(word in message for message in texts) for word in words]


async def test_children_and_processes_survive_20_posted_messages_and_report_once(tmp_path: Path) -> None:
    async with open_worker(tmp_path) as (hark, worker), serve_gateway(hark) as served:
        await start_work(served, worker)
        worker.release.set()
        (hark.folder / "go").touch()
        found = ("c-call0 finished", "c-call1 finished", "process job ended")

        async def is_reported() -> bool:
            return await is_idle(served) and all(await reports(served, *found))

        await until(is_reported)
        await served.say("demo", "thanks")
        await until(lambda: is_idle(served))
        assert await reports(served, *found) == [1, 1, 1]


async def test_work_lost_by_kill_9_of_the_gateway_is_reported_once(tmp_path: Path) -> None:
    async with open_worker(tmp_path) as (hark, worker):
        async with serve_gateway(hark) as served:
            await start_work(served, worker)
            served.running.process.kill()
            await served.running.process.wait()
        for _ in range(2):
            async with serve_gateway(hark) as served:

                async def is_reported() -> bool:
                    return await is_idle(served) and (await reports(served, "and is lost"))[0] >= 3

                await until(is_reported)
                assert await reports(served, "and is lost", "result of") == [3, 0]
        assert worker.started == set(GOALS)


async def test_each_steer_posted_as_its_turn_ends_runs_before_the_queue(tmp_path: Path) -> None:
    gates = [asyncio.Event() for _ in range(20)]
    script = [part for gate in gates for part in (gated(gate, "done"), text(["ok"]), text(["ok"]))]
    async with open_hark(tmp_path, script) as hark:
        (hark.home / "serve.json").write_text(json.dumps({"serve": {"port": 0}}))
        async with serve_gateway(hark) as served:
            for number, gate in enumerate(gates):
                await served.say("demo", f"go {number}", delivery="queue")
                await hark.server.request(3 * number + 1)
                await served.say("demo", f"queued {number}", delivery="queue")
                await served.say("demo", f"steer {number}", delivery="steer")
                gate.set()
                await served.until_text("demo", f"queued {number}")
                await until(lambda: is_idle(served))
            texts = [one for one in await served.texts("demo") if one.split()[0] in ("go", "queued", "steer")]
    assert texts == [f"{kind} {number}" for number in range(20) for kind in ("go", "steer", "queued")]
