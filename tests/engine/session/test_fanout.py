"""Events to readers: in order, numbered, and a slow reader loses no end."""

import asyncio

from hark.engine.session.fanout import SLOW_BACKLOG, Fanout, Subscription
from hark.protocol.events import AnyEvent, CallOutput, Notice, ReplyDelta, TurnStart
from tests.engine.engine_fixture import TestClock


def make() -> Fanout:
    return Fanout("s", TestClock())


async def rest(reader: Subscription) -> list[AnyEvent]:
    """All events of a reader whose fanout is closed."""
    return [event async for event in reader]


async def test_a_slow_reader_has_its_pieces_joined_and_misses_no_word() -> None:
    fanout = make()
    reader = fanout.subscribe()
    for number in range(10_000):
        fanout.emit(ReplyDelta, "t", f"{number} ")
    fanout.emit(Notice, "t", "end", "over")
    fanout.close()
    events = await rest(reader)
    assert len(events) < SLOW_BACKLOG * 2
    text = "".join(event.text for event in events if isinstance(event, ReplyDelta))
    assert text == "".join(f"{number} " for number in range(10_000))
    assert isinstance(events[-1], Notice)


async def test_events_that_are_no_pieces_are_never_dropped() -> None:
    fanout = make()
    reader = fanout.subscribe()
    for number in range(SLOW_BACKLOG * 4):
        fanout.emit(TurnStart, f"t{number}", ())
    fanout.close()
    assert len(await rest(reader)) == SLOW_BACKLOG * 4


async def test_endless_output_of_a_tool_takes_bounded_room_for_a_slow_reader() -> None:
    fanout = make()
    reader = fanout.subscribe()
    for _ in range(5_000):
        fanout.emit(CallOutput, "t", "c", "x" * 1_000)
    fanout.close()
    size = sum(len(event.text) for event in await rest(reader) if isinstance(event, CallOutput))
    assert size < 500_000


async def test_pieces_of_different_turns_and_calls_are_not_joined() -> None:
    fanout = make()
    reader = fanout.subscribe()
    for _ in range(SLOW_BACKLOG):
        fanout.emit(Notice, None, "x", "")
    fanout.emit(ReplyDelta, "t1", "a")
    fanout.emit(ReplyDelta, "t2", "b")
    fanout.emit(CallOutput, "t2", "c1", "c")
    fanout.emit(CallOutput, "t2", "c2", "d")
    fanout.close()
    texts = [event.text for event in await rest(reader) if isinstance(event, ReplyDelta | CallOutput)]
    assert texts == ["a", "b", "c", "d"]


async def test_a_slow_reader_does_not_slow_a_quick_one() -> None:
    fanout = make()
    slow, quick = fanout.subscribe(), fanout.subscribe()
    for number in range(SLOW_BACKLOG * 2):
        fanout.emit(ReplyDelta, "t", str(number))
        event = await anext(quick)
        assert isinstance(event, ReplyDelta)
        assert event.text == str(number)
    fanout.close()
    assert len(await rest(slow)) == SLOW_BACKLOG


async def test_numbers_rise_across_a_restart() -> None:
    fanout = make()
    reader = fanout.subscribe()
    fanout.emit(Notice, None, "a", "")
    fanout.start_at(3)
    fanout.emit(Notice, None, "b", "")
    fanout.start_at(1)
    fanout.emit(Notice, None, "c", "")
    fanout.close()
    numbers = [event.seq for event in await rest(reader)]
    assert numbers == sorted(set(numbers))
    assert numbers[1] > 3 << 20


async def test_a_reader_starts_when_it_subscribes_and_ends_when_it_leaves() -> None:
    fanout = make()
    fanout.emit(Notice, None, "before", "")
    reader = fanout.subscribe()
    waiting = asyncio.create_task(anext(reader, None))
    await asyncio.sleep(0)
    reader.close()
    assert await waiting is None
    assert not fanout.has_readers
