"""Events to readers are ordered and numbered, and a slow reader loses no end event."""

import asyncio

from hark.engine.session.fanout import SLOW_READER_EVENTS, Fanout, Subscription
from hark.protocol.events import AnyEvent, CallOutput, Notice, ReplyDelta, TurnStart
from tests.engine.engine_fixture import TestClock


def make_fanout() -> Fanout:
    return Fanout("s", TestClock())


async def read_remaining(reader: Subscription) -> list[AnyEvent]:
    """Return all remaining events for a reader whose fanout is closed."""
    return [event async for event in reader]


async def test_deltas_are_merged_without_loss_for_a_slow_reader() -> None:
    fanout = make_fanout()
    reader = fanout.subscribe()
    for number in range(10_000):
        fanout.emit(ReplyDelta, "t", f"{number} ")
    fanout.emit(Notice, "t", "end", "over")
    fanout.close()
    events = await read_remaining(reader)
    assert len(events) < SLOW_READER_EVENTS * 2
    text = "".join(event.text for event in events if isinstance(event, ReplyDelta))
    assert text == "".join(f"{number} " for number in range(10_000))
    assert isinstance(events[-1], Notice)


async def test_events_that_are_not_deltas_are_never_dropped() -> None:
    fanout = make_fanout()
    reader = fanout.subscribe()
    for number in range(SLOW_READER_EVENTS * 4):
        fanout.emit(TurnStart, f"t{number}", ())
    fanout.close()
    assert len(await read_remaining(reader)) == SLOW_READER_EVENTS * 4


async def test_unread_tool_output_for_a_slow_reader_is_bounded() -> None:
    fanout = make_fanout()
    reader = fanout.subscribe()
    for _ in range(5_000):
        fanout.emit(CallOutput, "t", "c", "x" * 1_000)
    fanout.close()
    size = sum(len(event.text) for event in await read_remaining(reader) if isinstance(event, CallOutput))
    assert size < 500_000


async def test_deltas_from_different_turns_and_calls_are_not_merged() -> None:
    fanout = make_fanout()
    reader = fanout.subscribe()
    for _ in range(SLOW_READER_EVENTS):
        fanout.emit(Notice, None, "x", "")
    fanout.emit(ReplyDelta, "t1", "a")
    fanout.emit(ReplyDelta, "t2", "b")
    fanout.emit(CallOutput, "t2", "c1", "c")
    fanout.emit(CallOutput, "t2", "c2", "d")
    fanout.close()
    texts = [event.text for event in await read_remaining(reader) if isinstance(event, ReplyDelta | CallOutput)]
    assert texts == ["a", "b", "c", "d"]


async def test_a_slow_reader_does_not_delay_a_fast_one() -> None:
    fanout = make_fanout()
    slow, quick = fanout.subscribe(), fanout.subscribe()
    for number in range(SLOW_READER_EVENTS * 2):
        fanout.emit(ReplyDelta, "t", str(number))
        event = await anext(quick)
        assert isinstance(event, ReplyDelta)
        assert event.text == str(number)
    fanout.close()
    assert len(await read_remaining(slow)) == SLOW_READER_EVENTS


async def test_event_numbers_keep_increasing_after_a_restart() -> None:
    fanout = make_fanout()
    reader = fanout.subscribe()
    fanout.emit(Notice, None, "a", "")
    fanout.start_at(3)
    fanout.emit(Notice, None, "b", "")
    fanout.start_at(1)
    fanout.emit(Notice, None, "c", "")
    fanout.close()
    numbers = [event.seq for event in await read_remaining(reader)]
    assert numbers == sorted(set(numbers))
    assert numbers[1] > 3 << 20


async def test_a_reader_gets_events_only_between_subscribe_and_close() -> None:
    fanout = make_fanout()
    fanout.emit(Notice, None, "before", "")
    reader = fanout.subscribe()
    waiting = asyncio.create_task(anext(reader, None))
    await asyncio.sleep(0)
    reader.close()
    assert await waiting is None
    assert not fanout.has_readers
