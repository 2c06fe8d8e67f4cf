"""The story of a turn has all that its journal knows of it."""

import pytest

from hark.protocol.messages import AssistantMessage, Call, UserMessage
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import AnyRecord, CallStarted, Replied, TurnEnded, TurnStarted
from hark.trace.from_journal import find_turn, story_of
from hark.trace.turn_trace import label, ticks, time_words
from tests.trace.example_turn import AT, CHILD, child, rich, turn


@pytest.mark.parametrize("wanted", ["demo.t2", "t2", "2"])
def test_a_turn_is_found_by_its_name_or_its_number(wanted: str) -> None:
    assert find_turn(rich(), wanted) == "demo.t2"


def test_without_a_name_it_is_the_last_turn() -> None:
    assert find_turn(rich()) == "demo.t3"
    assert find_turn([]) is None
    assert find_turn(rich(), "9") is None
    assert find_turn(rich(), "tt2") is None


def test_each_measured_stretch_has_its_reply_or_call() -> None:
    parts = story_of(rich(), "demo.t2").parts
    assert [(label(part), part.note) for part in parts] == [
        ("model main", "failed, asked again"),
        ("pause retry", ""),
        ("model main", "failed, asked again"),
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


def test_a_childs_parts_stand_below_its_call_in_its_parents_time() -> None:
    parts = story_of(rich(), "demo.t2", {CHILD: child()}).parts
    place = next(place for place, part in enumerate(parts) if part.name == "delegate")
    assert [(part.name, part.depth) for part in parts[place + 1 : place + 4]] == [("main", 1), ("grep", 1), ("main", 1)]
    assert parts[place + 2].start == pytest.approx(3_100 + 1_950, abs=0.01)


def test_it_knows_what_became_of_each_message() -> None:
    arrivals = story_of(rich(), "demo.t2").arrivals
    assert [(arrival.how, arrival.became) for arrival in arrivals] == [
        ("prompt", "started this turn"),
        ("steer", "steered into step 2, after 3.45 s"),
        ("interrupt", "interrupted this turn, started t3"),
    ]
    assert story_of(rich(), "demo.t3").arrivals[0].became == "started this turn, after 15 ms in the queue"


def test_a_turn_that_a_crash_cut_is_told_by_its_records_and_not_by_the_repair() -> None:
    records: list[AnyRecord] = [
        TurnStarted(turn="demo.t1", messages=(UserMessage("m", "go"),), at=AT),
        Replied(turn="demo.t1", step=1, message=AssistantMessage("", (Call("c", "shell"),)), route="main", at=AT + 2),
        CallStarted(turn="demo.t1", call="c", at=AT + 2.5),
        TurnEnded(turn="demo.t1", outcome=Interrupted("a crash"), at=AT + 90_000),
    ]
    story = story_of(records, "demo.t1")
    assert not story.is_measured
    assert story.total == pytest.approx(2_500, abs=0.01)
    assert [part.name for part in story.parts] == ["main", "shell"]


def test_a_turn_that_runs_is_told_as_far_as_it_is_known() -> None:
    story = story_of(turn(1)[:2], "demo.t1")
    assert story.outcome is None
    assert story.total == pytest.approx(1_000, abs=0.01)
    assert story.usage.output_tokens == 4


def test_times_are_short_and_ticks_are_round() -> None:
    words = [time_words(ms) for ms in (0.04, 9.94, 12.4, 999.4, 1_000, 12_345, 61_000, 3_600_000)]
    assert words == ["0.0 ms", "9.9 ms", "12 ms", "999 ms", "1.00 s", "12.3 s", "1:01 min", "1:00 h"]
    assert ticks(10_014, 6) == [0, 2_000, 4_000, 6_000, 8_000, 10_000]
    assert ticks(0.001, 6) == [0.0]
