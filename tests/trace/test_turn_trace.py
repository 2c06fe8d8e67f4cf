"""The trace of a turn contains everything that its journal records."""

import msgspec
import pytest

from hark.protocol.messages import AssistantMessage, Call, UserMessage
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import AnyRecord, CallStarted, Replied, TurnEnded, TurnStarted
from hark.trace.from_journal import build_trace, find_turn
from hark.trace.turn_trace import axis_ticks, format_duration, segment_label
from tests.trace.example_journal import CHILD, START_TIME, child_journal, example_journal, small_turn


@pytest.mark.parametrize("wanted", ["demo.t2", "t2", "2"])
def test_turn_is_found_by_its_name_or_number(wanted: str) -> None:
    assert find_turn(example_journal(), wanted) == "demo.t2"


def test_last_turn_is_found_when_no_name_is_given() -> None:
    assert find_turn(example_journal()) == "demo.t3"
    assert find_turn([]) is None
    assert find_turn(example_journal(), "9") is None
    assert find_turn(example_journal(), "tt2") is None


def test_each_measured_span_is_matched_to_its_reply_or_call() -> None:
    parts = build_trace(example_journal(), "demo.t2").parts
    assert [(segment_label(part), part.note) for part in parts] == [
        ("model main", "failed, retried"),
        ("pause retry", ""),
        ("model main", "failed, retried"),
        ("model spare", ""),
        ("snapshot", ""),
        ("approval write", ""),
        ("shell python -m pytest -q tests/app", "failed"),
        ("delegate look for other callers of parse()", ""),
        ("write ../outside.txt", "not started"),
        ("model spare", ""),
        ("shell sleep 120", "cancelled"),
    ]
    reply = dict(parts[3].details)
    assert reply["step"] == "1"
    assert reply["tokens"] == "3,210 in (2,048 cached), 140 out"
    assert parts[3].first == 2_100.0
    assert dict(parts[-1].details)["effect"] == "cancelled"
    assert parts[-1].settle == 12.1


def test_segments_of_a_child_follow_its_call_on_the_parents_timeline() -> None:
    parts = build_trace(example_journal(), "demo.t2", {CHILD: child_journal()}).parts
    place = next(place for place, part in enumerate(parts) if part.name == "delegate")
    assert [(part.name, part.depth) for part in parts[place + 1 : place + 4]] == [("main", 1), ("grep", 1), ("main", 1)]
    assert parts[place + 2].start == pytest.approx(3_100 + 1_950, abs=0.01)


def test_each_message_that_arrived_is_shown_with_its_effect() -> None:
    arrivals = build_trace(example_journal(), "demo.t2").arrivals
    assert [(arrival.how, arrival.became) for arrival in arrivals] == [
        ("prompt", "started this turn"),
        ("steer", "steered into step 2, after 3.45 s"),
        ("interrupt", "interrupted this turn, started t3"),
    ]
    assert build_trace(example_journal(), "demo.t3").arrivals[0].became == "started this turn, after 15 ms in the queue"


def test_duration_of_a_crashed_turn_ends_at_its_last_record_before_the_crash() -> None:
    records: list[AnyRecord] = [
        TurnStarted(turn="demo.t1", messages=(UserMessage("m", "go"),), at=START_TIME),
        Replied(
            turn="demo.t1", step=1, message=AssistantMessage("", (Call("c", "shell"),)), route="main", at=START_TIME + 2
        ),
        CallStarted(turn="demo.t1", call="c", at=START_TIME + 2.5),
        TurnEnded(turn="demo.t1", outcome=Interrupted("a crash"), at=START_TIME + 90_000),
    ]
    story = build_trace(records, "demo.t1")
    assert not story.is_measured
    assert story.total == pytest.approx(2_500, abs=0.01)
    assert [part.name for part in story.parts] == ["main", "shell"]


def test_trace_of_a_running_turn_contains_the_records_so_far() -> None:
    story = build_trace(small_turn(1)[:2], "demo.t1")
    assert story.outcome is None
    assert story.total == pytest.approx(1_000, abs=0.01)
    assert story.usage.output_tokens == 4


def test_durations_and_axis_ticks_are_rounded() -> None:
    words = [format_duration(ms) for ms in (0.04, 9.94, 12.4, 999.4, 1_000, 12_345, 61_000, 3_600_000)]
    assert words == ["0.0 ms", "9.9 ms", "12 ms", "999 ms", "1.00 s", "12.3 s", "1:01 min", "1:00 h"]
    assert axis_ticks(10_014, 6) == [0, 2_000, 4_000, 6_000, 8_000, 10_000]
    assert axis_ticks(0.001, 6) == [0.0]


def test_arguments_that_are_nested_too_deeply_to_format_are_shown_as_they_are() -> None:
    reply = AssistantMessage("", (Call("c1", "shell", "[" * 5_000),))
    records: list[AnyRecord] = [
        msgspec.structs.replace(record, message=reply)
        if isinstance(record, Replied) and record.turn == "demo.t2"
        else record
        for record in example_journal()
    ]
    assert build_trace(records, "demo.t2").parts
