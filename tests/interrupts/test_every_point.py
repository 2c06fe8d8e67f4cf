"""Every point of a turn, cut by every kind of interrupt: what is promised holds at each."""

import asyncio
import time
from pathlib import Path

import pytest

from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.receipts import ReceiptState, Settled
from tests.fakes.models.behaviours import Seen
from tests.fakes.models.history_rules import Wire
from tests.interrupts.histories import check_everywhere
from tests.interrupts.interrupt_fixture import NEXT_REPLY, World, opened, processes_in
from tests.interrupts.kinds import KINDS, NEXT, Kind, closed, other_task, process, stop, thread
from tests.interrupts.points import POINTS, Point, full_port
from tests.waiting import at_most

SETTLE_SECONDS = at_most(1.0)
PLAIN_STOPS = (stop, other_task)
OTHER_PROCESS_POINTS = ("before the first byte", "in the text", "in one tool", "in a question", "in three tools")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
async def test_a_turn_that_is_cut(point: Point, kind: Kind, tmp_path: Path) -> None:
    async with opened(tmp_path, point.script) as world:
        await world.open()
        await point.reach(world)
        began = time.perf_counter()
        world.is_cut = True
        settled = await kind(world)
        seconds = time.perf_counter() - began
        await check_silence(world, point)
        check_settlement(settled, point, seconds)
        if kind in PLAIN_STOPS and not point.may_complete:
            assert settled is not None
            assert isinstance(settled.outcome, Interrupted)
        await check_next_turn(world, point, kind)


@pytest.mark.parametrize("name", OTHER_PROCESS_POINTS)
async def test_a_turn_that_is_cut_from_another_process(name: str, tmp_path: Path) -> None:
    point = POINTS[name]
    async with opened(tmp_path, point.script) as world:
        await world.open()
        await point.reach(world)
        world.is_cut = True
        await process(world)
        await check_silence(world, point)
        await check_next_turn(world, point, process)


@pytest.mark.parametrize("kind", [stop, closed], ids=["stop", "the agent is closed"])
async def test_a_turn_that_is_cut_while_it_connects(kind: Kind, tmp_path: Path) -> None:
    async with opened(tmp_path, []) as world:
        async with full_port() as port:
            await world.open(f"http://127.0.0.1:{port}/v1")
            await world.say("go")
            began = time.perf_counter()
            settled = await kind(world)
            check_settlement(settled, POINTS["before the first byte"], time.perf_counter() - began)
        if kind is not closed:
            await world.close()
        await check_next_turn(world, POINTS["before the first byte"], closed)


async def check_silence(world: World, point: Point) -> None:
    """The server saw the close, and no process is left."""
    if point.is_streaming:
        async with asyncio.timeout(SETTLE_SECONDS):
            await world.server.requests[0].left.wait()
    assert processes_in(world.home) == []


def check_settlement(settled: Settled | None, point: Point, seconds: float) -> None:
    assert seconds < SETTLE_SECONDS + 0.2, f"it took {seconds:.3f} s"
    if settled is not None and isinstance(settled.outcome, Interrupted):
        assert settled.timings.settle <= 1000 * at_most(point.settle_ms / 1000)
        assert settled.outcome.left_running in ((), ("deaf",))


async def check_next_turn(world: World, point: Point, kind: Kind) -> None:
    """The next turn completes, and its request has all that was said once, and what was seen."""
    if kind is closed:
        await world.open()
    before = len(world.server.requests)
    if NEXT not in world.said:
        await world.say(NEXT)
    assert await world.session.idle() == Completed(NEXT_REPLY)
    receipts = [await saying for saying in world.says]
    assert {receipt.state for receipt in receipts} <= set(ReceiptState) - {ReceiptState.DUPLICATE}
    assert len({receipt.id for receipt in receipts}) == len(world.said)
    if kind in (*PLAIN_STOPS, thread, process):
        assert all(NEXT in str(seen.body["messages"]) for seen in world.server.requests[before:])
    check_history(world.server.requests[-1], world, point)


def check_history(seen: Seen, world: World, point: Point) -> None:
    check_everywhere(seen.body)
    messages: list[Wire] = seen.body["messages"]
    people = [one["content"] for one in messages if one["role"] == "user" and one["content"] in world.said]
    assert sorted(people) == sorted(world.said), "everything that was said is there exactly once"
    replies = [one["content"] for one in messages if one["role"] == "assistant"]
    if point.partial:
        assert point.partial in replies
    results = [one["content"] for one in messages if one["role"] == "tool"]
    assert all(any(words in result for result in results) for words in point.results), results
    if not point.may_complete and not is_uncut(world):
        assert any(str(one["content"]).startswith("[This turn was interrupted") for one in messages)


def is_uncut(world: World) -> bool:
    """True when the first message had started no turn that could be cut: it waited, or went with the next one."""
    first, *others = (saying.result() for saying in world.says)
    return first.state is ReceiptState.QUEUED or any(first.turn == other.turn for other in others)
