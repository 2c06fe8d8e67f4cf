"""Thousands of streaming sessions in one process: memory for each, and how fast one or all of them stop."""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

import hark
from bench.bare import open_http, stream
from bench.model import Server, agent, model_server
from bench.run import Plan, in_fresh_process
from bench.table import Figure, Spread
from hark.cli.main import calm_collector
from hark.protocol.events import AnyEvent, ReplyDelta, TurnEnd

SESSIONS = 5_000
MODEL = "stream-1000@0.2"  # a thousand tokens a second, of all together
AT_ONCE = 200  # how many are started side by side, so that the server's backlog suffices
SAMPLES = 100
MEMORY_TARGET = Spread(40.0)
ONE_TARGET = Spread(1.5, 10.0)


def measure(plan: Plan) -> list[Figure]:
    """Measure Hark and the bare loop, each in its own process: only so is the memory its own."""
    count = plan.count(SESSIONS)
    ours = in_fresh_process(_run, plan, count, is_bare=False)
    bare = in_fresh_process(_run, plan, count, is_bare=True)
    return [
        Figure(f"memory of a session, {count} stream", "kB", ours[0], bare[0], MEMORY_TARGET),
        Figure("one of them stops", "ms", ours[1], bare[1], ONE_TARGET),
        Figure("all of them stop", "ms", ours[2], bare[2]),
    ]


def _run(plan: Plan, count: int, *, is_bare: bool) -> tuple[Spread, Spread, Spread]:
    calm_collector()  # as the command does; the bare loop gets the same
    with model_server() as server:
        return plan.run(_bare(server, count) if is_bare else _ours(server, count))


async def _ours(server: Server, count: int) -> tuple[Spread, Spread, Spread]:
    async with agent(server, MODEL) as opened, asyncio.TaskGroup() as readers:
        first_session = opened.session("first")
        await _start(readers, first_session)
        await first_session.interrupt()
        before = _resident_kb()
        sessions = [opened.session(f"s{number}") for number in range(count)]
        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*(_start(readers, session) for session in sessions[first : first + AT_ONCE]))
        memory = (_resident_kb() - before) / count
        one: list[float] = []
        for session in sessions[:SAMPLES]:
            called = time.perf_counter()
            assert await session.interrupt() is not None
            one.append((time.perf_counter() - called) * 1000)
        called = time.perf_counter()
        settled = await asyncio.gather(*(session.interrupt() for session in sessions[SAMPLES:]))
        assert None not in settled
        return Spread(memory), Spread.of(one), Spread((time.perf_counter() - called) * 1000)


async def _start(readers: asyncio.TaskGroup, session: hark.SessionHandle) -> None:
    """Say something and wait for the first token; somebody reads the events to the end, as a surface would."""
    begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    readers.create_task(_read_events(session.events(), begun))
    await session.say("go")
    await begun


async def _read_events(events: AsyncIterator[AnyEvent], begun: asyncio.Future[None]) -> None:
    async for event in events:
        if isinstance(event, ReplyDelta) and not begun.done():
            begun.set_result(None)
        elif isinstance(event, TurnEnd):
            return


async def _bare(server: Server, count: int) -> tuple[Spread, Spread, Spread]:
    async with open_http() as http:
        before = _resident_kb()
        tasks: list[asyncio.Task[None]] = []
        for first in range(0, count, AT_ONCE):
            begun = [asyncio.Event() for _ in range(first, min(first + AT_ONCE, count))]
            tasks += [asyncio.create_task(_read(http, server, event)) for event in begun]
            await asyncio.gather(*(event.wait() for event in begun))
        memory = (_resident_kb() - before) / count
        one: list[float] = []
        for task in tasks[:SAMPLES]:
            called = time.perf_counter()
            await _cancel([task])
            one.append((time.perf_counter() - called) * 1000)
        called = time.perf_counter()
        await _cancel(tasks[SAMPLES:])
        return Spread(memory), Spread.of(one), Spread((time.perf_counter() - called) * 1000)


async def _read(http: aiohttp.ClientSession, server: Server, begun: asyncio.Event) -> None:
    async for _ in stream(http, server, MODEL, "go"):
        begun.set()


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _resident_kb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
