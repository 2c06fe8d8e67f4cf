"""A turn keeps all guarantees when any kind of interrupt occurs at any point."""

import asyncio
import time
from pathlib import Path

import pytest

from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.receipts import ReceiptState, Settled
from tests.fakes.models.behaviours import ReceivedRequest
from tests.fakes.models.history_rules import Wire
from tests.interrupts.histories import check_for_all_protocols
from tests.interrupts.interrupt_fixture import NEXT_REPLY, InterruptFixture, open_fixture, processes_in
from tests.interrupts.kinds import (
    KINDS,
    NEXT,
    InterruptKind,
    close_agent,
    stop,
    stop_from_other_process,
    stop_in_other_task,
    stop_in_thread,
)
from tests.interrupts.points import POINTS, InterruptPoint, port_with_full_backlog
from tests.waiting import at_most

SETTLE_SECONDS = at_most(1.0)
PLAIN_STOPS = (stop, stop_in_other_task)
OTHER_PROCESS_POINTS = ("before the first byte", "in the text", "in one tool", "in a question", "in three tools")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
async def test_an_interrupted_turn_keeps_all_guarantees(
    point: InterruptPoint, kind: InterruptKind, tmp_path: Path
) -> None:
    async with open_fixture(tmp_path, point.script) as fixture:
        await fixture.open()
        await point.reach(fixture)
        began = time.perf_counter()
        fixture.is_interrupted = True
        settled = await kind(fixture)
        seconds = time.perf_counter() - began
        await check_silence(fixture, point)
        check_stop_time(settled, point, seconds)
        if kind in PLAIN_STOPS and not point.may_complete:
            assert settled is not None
            assert isinstance(settled.outcome, Interrupted)
        await check_next_turn(fixture, point, kind)


@pytest.mark.parametrize("name", OTHER_PROCESS_POINTS)
async def test_a_turn_interrupted_from_another_process_keeps_all_guarantees(name: str, tmp_path: Path) -> None:
    point = POINTS[name]
    async with open_fixture(tmp_path, point.script) as fixture:
        await fixture.open()
        await point.reach(fixture)
        fixture.is_interrupted = True
        await stop_from_other_process(fixture)
        await check_silence(fixture, point)
        await check_next_turn(fixture, point, stop_from_other_process)


@pytest.mark.parametrize("kind", [stop, close_agent], ids=["stop", "the agent is closed"])
async def test_a_turn_interrupted_while_connecting_keeps_all_guarantees(kind: InterruptKind, tmp_path: Path) -> None:
    async with open_fixture(tmp_path, []) as fixture:
        async with port_with_full_backlog() as port:
            await fixture.open(f"http://127.0.0.1:{port}/v1")
            await fixture.send("go")
            began = time.perf_counter()
            settled = await kind(fixture)
            check_stop_time(settled, POINTS["before the first byte"], time.perf_counter() - began)
        if kind is not close_agent:
            await fixture.close()
        await check_next_turn(fixture, POINTS["before the first byte"], close_agent)


async def check_silence(fixture: InterruptFixture, point: InterruptPoint) -> None:
    """Check that an open model request was closed and that no process is left."""
    if point.is_streaming:
        async with asyncio.timeout(SETTLE_SECONDS):
            await fixture.server.requests[0].disconnected.wait()
    assert processes_in(fixture.home) == []


def check_stop_time(settled: Settled | None, point: InterruptPoint, seconds: float) -> None:
    assert seconds < SETTLE_SECONDS + 0.2, f"the stop took {seconds:.3f} s"
    if settled is not None and isinstance(settled.outcome, Interrupted):
        assert settled.timings.settle <= 1000 * at_most(point.settle_ms / 1000)
        assert settled.outcome.left_running in ((), ("deaf",))


async def check_next_turn(fixture: InterruptFixture, point: InterruptPoint, kind: InterruptKind) -> None:
    """Check that the next turn completes and that its request has each message once and the text that the user saw."""
    if kind is close_agent:
        await fixture.open()
    before = len(fixture.server.requests)
    if NEXT not in fixture.sent_texts:
        await fixture.send(NEXT)
    assert await fixture.session.idle() == Completed(NEXT_REPLY)
    receipts = [await saying for saying in fixture.receipt_tasks]
    assert {receipt.state for receipt in receipts} <= set(ReceiptState) - {ReceiptState.DUPLICATE}
    assert len({receipt.id for receipt in receipts}) == len(fixture.sent_texts)
    if kind in (*PLAIN_STOPS, stop_in_thread, stop_from_other_process):
        assert all(NEXT in str(seen.body["messages"]) for seen in fixture.server.requests[before:])
    check_history(fixture.server.requests[-1], fixture, point)


def check_history(request: ReceivedRequest, fixture: InterruptFixture, point: InterruptPoint) -> None:
    check_for_all_protocols(request.body)
    messages: list[Wire] = request.body["messages"]
    user_texts = [one["content"] for one in messages if one["role"] == "user" and one["content"] in fixture.sent_texts]
    assert sorted(user_texts) == sorted(fixture.sent_texts), "every message is in the request exactly once"
    replies = [one["content"] for one in messages if one["role"] == "assistant"]
    if point.partial:
        assert point.partial in replies
    results = [one["content"] for one in messages if one["role"] == "tool"]
    assert all(any(words in result for result in results) for words in point.results), results
    if not point.may_complete and not started_no_turn(fixture):
        assert any(str(one["content"]).startswith("[This turn was interrupted") for one in messages)


def started_no_turn(fixture: InterruptFixture) -> bool:
    """Return whether the first message started no separate turn, because it was queued or merged with a later one."""
    first, *others = (saying.result() for saying in fixture.receipt_tasks)
    return first.state is ReceiptState.QUEUED or any(first.turn == other.turn for other in others)
