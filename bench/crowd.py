"""Thousands of streaming sessions in one process: memory per session, and the time to stop one or all."""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

import hark
from bench.bare_loop import open_http_session, stream_reply
from bench.model import FakeModelServer, open_agent, run_model_server
from bench.run import BenchOptions, run_in_new_process
from bench.table import Figure, Percentiles
from hark.cli.main import tune_garbage_collector
from hark.protocol.events import AnyEvent, ReplyDelta, TurnEnd

SESSIONS = 5_000
MODEL = "stream-1000@0.2"  # a thousand tokens per second for all sessions
MAX_CONCURRENT_STARTS = 200  # sessions started concurrently, limited by the server's backlog
SAMPLES = 100
MEMORY_TARGET = Percentiles(40.0)
ONE_TARGET = Percentiles(1.5, 10.0)


def measure(options: BenchOptions) -> list[Figure]:
    """Measure Hark and the bare loop, each in its own process, so that memory is measured separately."""
    count = options.scale(SESSIONS)
    hark_values = run_in_new_process(_measure_variant, options, count, is_bare=False)
    bare_values = run_in_new_process(_measure_variant, options, count, is_bare=True)
    return [
        Figure(f"memory per session, {count} streaming", "kB", hark_values[0], bare_values[0], MEMORY_TARGET),
        Figure("stop one session", "ms", hark_values[1], bare_values[1], ONE_TARGET),
        Figure("stop all sessions", "ms", hark_values[2], bare_values[2]),
    ]


def _measure_variant(
    options: BenchOptions, count: int, *, is_bare: bool
) -> tuple[Percentiles, Percentiles, Percentiles]:
    tune_garbage_collector()  # as the hark command does; the same for the bare loop
    with run_model_server() as server:
        return options.run(_measure_bare(server, count) if is_bare else _measure_hark(server, count))


async def _measure_hark(server: FakeModelServer, count: int) -> tuple[Percentiles, Percentiles, Percentiles]:
    async with open_agent(server, MODEL) as opened, asyncio.TaskGroup() as readers:
        first_session = opened.session("first")
        await _start_turn(readers, first_session)
        await first_session.interrupt()
        before = _resident_kb()
        sessions = [opened.session(f"s{number}") for number in range(count)]
        for first in range(0, count, MAX_CONCURRENT_STARTS):
            await asyncio.gather(
                *(_start_turn(readers, session) for session in sessions[first : first + MAX_CONCURRENT_STARTS])
            )
        memory = (_resident_kb() - before) / count
        stop_times: list[float] = []
        for session in sessions[:SAMPLES]:
            started = time.perf_counter()
            assert await session.interrupt() is not None
            stop_times.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        settled = await asyncio.gather(*(session.interrupt() for session in sessions[SAMPLES:]))
        assert None not in settled
        return Percentiles(memory), Percentiles.of(stop_times), Percentiles((time.perf_counter() - started) * 1000)


async def _start_turn(readers: asyncio.TaskGroup, session: hark.SessionHandle) -> None:
    """Send a message and wait for the first token. A task reads the events to the end, as a surface would."""
    first_token: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    readers.create_task(_read_events(session.events(), first_token))
    await session.say("go")
    await first_token


async def _read_events(events: AsyncIterator[AnyEvent], first_token: asyncio.Future[None]) -> None:
    async for event in events:
        if isinstance(event, ReplyDelta) and not first_token.done():
            first_token.set_result(None)
        elif isinstance(event, TurnEnd):
            return


async def _measure_bare(server: FakeModelServer, count: int) -> tuple[Percentiles, Percentiles, Percentiles]:
    async with open_http_session() as http:
        before = _resident_kb()
        tasks: list[asyncio.Task[None]] = []
        for first in range(0, count, MAX_CONCURRENT_STARTS):
            first_tokens = [asyncio.Event() for _ in range(first, min(first + MAX_CONCURRENT_STARTS, count))]
            tasks += [asyncio.create_task(_read_stream(http, server, event)) for event in first_tokens]
            await asyncio.gather(*(event.wait() for event in first_tokens))
        memory = (_resident_kb() - before) / count
        stop_times: list[float] = []
        for task in tasks[:SAMPLES]:
            started = time.perf_counter()
            await _cancel_all([task])
            stop_times.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        await _cancel_all(tasks[SAMPLES:])
        return Percentiles(memory), Percentiles.of(stop_times), Percentiles((time.perf_counter() - started) * 1000)


async def _read_stream(http: aiohttp.ClientSession, server: FakeModelServer, first_token: asyncio.Event) -> None:
    async for _ in stream_reply(http, server, MODEL, "go"):
        first_token.set()


async def _cancel_all(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _resident_kb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024
