"""The fold of the journal: the same records give the same state, in the same order."""

import pytest

from hark.engine.session.state import SessionState
from hark.engine.turn.tokens import estimate
from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Edited,
    Held,
    Moved,
    Quarantined,
    Queued,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.store import Summary

TURN = "s.t1"


def queued(name: str, turn: str = TURN) -> Queued:
    delivery = {"i": Delivery.INTERRUPT, "s": Delivery.STEER, "q": Delivery.QUEUE}[name[0]]
    is_first = delivery is Delivery.INTERRUPT
    return Queued(message=UserMessage(name, name), delivery=delivery, turn=turn, is_first=is_first)


def fold(*records: AnyRecord) -> SessionState:
    state = SessionState()
    for record in (TurnStarted(turn=TURN, messages=(UserMessage("m", "Title\nrest"),), inbox=1), *records):
        state.apply(record)
    return state


def order(state: SessionState) -> str:
    return " ".join(waiting.message.id for waiting in state.queue)


@pytest.mark.parametrize(
    ("arrivals", "line"),
    [
        ("q1 q2 q3", "q1 q2 q3"),
        ("q1 i2", "i2 q1"),
        ("q1 i2 i3", "i2 i3 q1"),
        ("q1 s2 i3", "s2 i3 q1"),
        ("s1 q2 s3 i4", "s1 s3 i4 q2"),
        ("s1 q2 s3", "s1 q2 s3"),
    ],
)
def test_an_interrupting_message_goes_before_what_is_queued_and_takes_the_turns_steers_along(
    arrivals: str, line: str
) -> None:
    assert order(fold(*(queued(name) for name in arrivals.split()))) == line


def test_a_steer_for_another_turn_is_not_taken_along() -> None:
    assert order(fold(queued("s1", "s.t0"), queued("i2"))) == "i2 s1"
    assert fold(queued("s1", "s.t0"), queued("s2")).steers() == [UserMessage("s2", "s2")]


def test_edits_moves_and_withdrawals_change_the_queue() -> None:
    state = fold(
        *(queued(name) for name in ("q1", "q2", "q3")),
        Moved(message="q3", position=1),
        Edited(message="q1", text="new"),
        Withdrawn(message="q2", text="q2", reason="withdrawn"),
    )
    assert [(waiting.message.id, waiting.message.text) for waiting in state.queue] == [("q3", "q3"), ("q1", "new")]
    assert state.position("q1") == 2


def test_a_steered_message_is_in_the_transcript_and_no_longer_waits() -> None:
    state = fold(queued("s1"), Steered(turn=TURN, step=2, messages=(UserMessage("s1", "s1"),)))
    assert state.queue == []
    assert state.transcript.messages[-1] == UserMessage("s1", "s1")


def test_a_reply_that_says_nothing_leaves_no_trace() -> None:
    state = fold(Replied(turn=TURN, step=1, message=AssistantMessage("")))
    assert state.transcript.messages == [UserMessage("m", "Title\nrest")]


def test_a_late_result_is_in_no_transcript() -> None:
    end = TurnEnded(turn=TURN, outcome=Completed("x"))
    state = fold(end, Quarantined(turn=TURN, call="c", name="n", text="late"))
    assert state.transcript.messages == [UserMessage("m", "Title\nrest")]


def test_an_interrupted_turn_leaves_a_note_behind_the_results_of_its_calls() -> None:
    result = CallResult("c", "n", "[cancelled]", Effect.CANCELLED, is_error=True)
    state = fold(
        Replied(turn=TURN, step=1, message=AssistantMessage("", (Call("c", "n"),))),
        CallEnded(turn=TURN, result=result),
        TurnEnded(turn=TURN, outcome=Interrupted("user")),
    )
    assert state.transcript.messages[2] == result
    assert isinstance(state.transcript.messages[3], Note)
    assert state.turn is None


def test_a_record_for_a_turn_that_is_not_open_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"s\.t9 is not the open turn"):
        fold(Replied(turn="s.t9", step=1, message=AssistantMessage("x")))


def test_the_summary_says_what_a_list_of_sessions_needs() -> None:
    assert fold(queued("q1")).summary() == Summary(1, True, True, 1, "Title", 0.0)
    end = TurnEnded(turn=TURN, outcome=Completed("x"), at=5.0)
    assert fold(queued("q1"), Held(), end).summary() == Summary(1, False, False, 1, "Title", 5.0)


def test_a_turn_is_found_as_long_as_it_is_there_as_it_was() -> None:
    end = TurnEnded(turn=TURN, outcome=Completed("x"))
    said = AssistantMessage("hello")
    state = fold(
        Replied(turn=TURN, step=1, message=said), end, TurnStarted(turn="s.t2", messages=(UserMessage("n", "n"),))
    )
    assert state.transcript.of(TURN) == [UserMessage("m", "Title\nrest"), said]
    assert state.transcript.of("s.t2") == [UserMessage("n", "n")]
    assert state.transcript.of("s.t9") is None
    state.transcript.compact(2, "summary")
    assert state.transcript.of(TURN) is None
    assert state.transcript.of("s.t2") == [UserMessage("n", "n")]


def test_the_size_of_a_transcript_is_known_whatever_happens_to_it() -> None:
    state = fold(Replied(turn=TURN, step=1, message=AssistantMessage("hello " * 100)))
    transcript = state.transcript
    assert transcript.tokens == estimate(transcript.messages) > 100
    transcript.compact(2, "summary")
    assert transcript.tokens == estimate(transcript.messages)
    transcript.rewind("")
    assert transcript.tokens == 0
