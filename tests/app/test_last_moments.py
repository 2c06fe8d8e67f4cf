"""Messages and background work in the last moments of a turn or call."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import hark
from hark.app.background_work import BackgroundWork
from hark.processes.background import BackgroundProcess, BackgroundProcesses
from hark.protocol.commands import ChangeCommand, EndWork, StartWork
from hark.protocol.events import TurnEnd
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import LimitReached, Usage
from hark.protocol.provider import Chunk, EndChunk, Request, TextChunk, UsageChunk
from hark.protocol.receipts import Refusal
from hark.protocol.session import EventReader
from tests.app.test_background_work import Model, open_agent, start_process, wait_for_reports
from tests.waiting import until

STEERS = 100
MAX_PASSES = 20


class GatedModel:
    """A model whose reply to "go" ends when `end` is set."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.is_waiting = asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        yield TextChunk("working")
        if request.messages[-1].text == "go":
            self.is_waiting.set()
            await self.end.wait()
        yield EndChunk("stop")


async def count_ends(events: EventReader, ends: list[str]) -> None:
    """Add the turn of each end event to `ends`, as soon as it is published."""
    async for event in events:
        match event:
            case TurnEnd(turn=turn):
                ends.append(turn or "")
            case _:
                pass


async def test_each_of_100_steers_sent_before_users_see_the_end_of_a_turn_runs_before_the_queue(tmp_path: Path) -> None:
    model, checked = GatedModel(), 0
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": model}]) as agent:
        for number in range(STEERS):
            model.end.clear()
            model.is_waiting.clear()
            session, ends = agent.session(f"s{number}"), list[str]()
            await session.say("go")
            await model.is_waiting.wait()
            await session.say("queued", "queue")
            reading = asyncio.create_task(count_ends(session.events(), ends))
            model.end.set()
            for _ in range(number % MAX_PASSES):
                await asyncio.sleep(0)
            is_running = not ends
            await session.say("steer", "steer")
            await session.idle()
            reading.cancel()
            texts = [one.text for one in await session.transcript() if isinstance(one, UserMessage)]
            assert texts == ["go", "steer", "queued"] or not is_running
            checked += is_running
    assert checked > STEERS / 2


async def test_wake_ups_count_towards_the_limits_of_the_session(tmp_path: Path) -> None:
    class CountingModel(Model):
        async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
            yield UsageChunk(Usage(60, 0))
            async for chunk in super().stream(request):
                yield chunk

    jobs = [start_process(number, f"until [ -e go{number} ]; do sleep 0.05; done", f"job{number}") for number in (0, 1)]
    model = CountingModel(*jobs)
    async with open_agent(tmp_path, model, limits={"session_tokens": 150}) as agent:
        session = agent.session("parent")
        await session.say("start them")
        await session.idle()
        (tmp_path / "go0").touch()
        await wait_for_reports(session, 1)
        (tmp_path / "go1").touch()
        await wait_for_reports(session, 2)
        outcome = await session.idle()
        requests = len(model.requests)
    assert isinstance(outcome, LimitReached)
    assert requests == 3, "the second wake-up made no request"


async def test_a_process_is_watched_if_its_call_is_cancelled_while_the_start_is_recorded() -> None:
    commands: list[ChangeCommand] = []
    is_recorded, has_ended = asyncio.Event(), asyncio.Event()

    async def change(session: str, command: ChangeCommand) -> Refusal | None:
        commands.append(command)
        await is_recorded.wait()
        return None

    process = cast(
        "BackgroundProcess",
        SimpleNamespace(
            work="job-1",
            name="job",
            command_text="make",
            status_text="ended",
            is_end_read=False,
            was_stopped=False,
            wait_until_ended=has_ended.wait,
            output=SimpleNamespace(peek=lambda: "built"),
        ),
    )
    work = BackgroundWork(cast("BackgroundProcesses", None), change)
    call = asyncio.create_task(work.watch_process("s", process))
    await until(lambda: len(commands) == 1)
    call.cancel()
    await asyncio.wait([call])
    await work.watch_process("s", process)  # the tool calls it again if a message cancelled the call
    is_recorded.set()
    has_ended.set()
    await until(lambda: not work.running)
    assert [type(command) for command in commands] == [StartWork, EndWork]
    assert isinstance(commands[1], EndWork)
    assert "built" in commands[1].report
    await work.close()
