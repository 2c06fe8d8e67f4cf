"""The fold of the journal: the same records always give the same state."""

import pytest

from hark.engine.session.state import SessionState
from hark.engine.turn.tokens import estimate_total_tokens
from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, Note, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    Edited,
    Moved,
    Quarantined,
    Queued,
    QueueHeld,
    Replied,
    Steered,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.store import SessionSummary

TURN = "s.t1"


def queued_record(name: str, turn: str = TURN) -> Queued:
    delivery = {"i": Delivery.INTERRUPT, "s": Delivery.STEER, "q": Delivery.QUEUE}[name[0]]
    is_first = delivery is Delivery.INTERRUPT
    return Queued(message=UserMessage(name, name), delivery=delivery, turn=turn, is_first=is_first)


def fold_records(*records: AnyRecord) -> SessionState:
    state = SessionState()
    for record in (TurnStarted(turn=TURN, messages=(UserMessage("m", "Title\nrest"),), inbox=1), *records):
        state.apply(record)
    return state


def queue_order(state: SessionState) -> str:
    return " ".join(item.message.id for item in state.queue)


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("q1 q2 q3", "q1 q2 q3"),
        ("q1 i2", "i2 q1"),
        ("q1 i2 i3", "i2 i3 q1"),
        ("q1 s2 i3", "s2 i3 q1"),
        ("s1 q2 s3 i4", "s1 s3 i4 q2"),
        ("s1 q2 s3", "s1 q2 s3"),
    ],
)
def test_an_interrupting_message_and_earlier_steers_precede_queued_messages(arrivals: str, expected: str) -> None:
    assert queue_order(fold_records(*(queued_record(name) for name in arrivals.split()))) == expected


def test_an_interrupting_message_precedes_a_steer_for_another_turn() -> None:
    assert queue_order(fold_records(queued_record("s1", "s.t0"), queued_record("i2"))) == "i2 s1"
    assert fold_records(queued_record("s1", "s.t0"), queued_record("s2")).pending_steers() == [UserMessage("s2", "s2")]


def test_edits_moves_and_withdrawals_change_the_queue() -> None:
    state = fold_records(
        *(queued_record(name) for name in ("q1", "q2", "q3")),
        Moved(message="q3", position=1),
        Edited(message="q1", text="new"),
        Withdrawn(message="q2", text="q2", reason="withdrawn"),
    )
    assert [(item.message.id, item.message.text) for item in state.queue] == [("q3", "q3"), ("q1", "new")]
    assert state.position_of("q1") == 2


def test_a_steered_message_moves_from_the_queue_to_the_transcript() -> None:
    state = fold_records(queued_record("s1"), Steered(turn=TURN, step=2, messages=(UserMessage("s1", "s1"),)))
    assert state.queue == []
    assert state.transcript.messages[-1] == UserMessage("s1", "s1")


def test_an_empty_reply_is_not_added_to_the_transcript() -> None:
    state = fold_records(Replied(turn=TURN, step=1, message=AssistantMessage("")))
    assert state.transcript.messages == [UserMessage("m", "Title\nrest")]


def test_a_quarantined_late_result_is_not_in_the_transcript() -> None:
    end = TurnEnded(turn=TURN, outcome=Completed("x"))
    state = fold_records(end, Quarantined(turn=TURN, call="c", name="n", text="late"))
    assert state.transcript.messages == [UserMessage("m", "Title\nrest")]


def test_an_interrupted_turn_adds_a_note_after_its_call_results() -> None:
    result = CallResult("c", "n", "[cancelled]", Effect.CANCELLED, is_error=True)
    state = fold_records(
        Replied(turn=TURN, step=1, message=AssistantMessage("", (Call("c", "n"),))),
        CallEnded(turn=TURN, result=result),
        TurnEnded(turn=TURN, outcome=Interrupted("user")),
    )
    assert state.transcript.messages[2] == result
    assert isinstance(state.transcript.messages[3], Note)
    assert state.turn is None


def test_a_record_for_a_turn_that_is_not_open_is_rejected() -> None:
    with pytest.raises(AssertionError, match=r"s\.t9 is not the open turn"):
        fold_records(Replied(turn="s.t9", step=1, message=AssistantMessage("x")))


def test_the_session_summary_contains_the_data_for_the_session_list() -> None:
    assert fold_records(queued_record("q1")).summary() == SessionSummary(1, True, True, 1, "Title", 0.0)
    end = TurnEnded(turn=TURN, outcome=Completed("x"), at=5.0)
    assert fold_records(queued_record("q1"), QueueHeld(), end).summary() == SessionSummary(
        1, False, False, 1, "Title", 5.0
    )


def test_messages_of_a_turn_are_found_unless_they_were_summarised() -> None:
    end = TurnEnded(turn=TURN, outcome=Completed("x"))
    reply = AssistantMessage("hello")
    state = fold_records(
        Replied(turn=TURN, step=1, message=reply), end, TurnStarted(turn="s.t2", messages=(UserMessage("n", "n"),))
    )
    assert state.transcript.messages_of_turn(TURN) == [UserMessage("m", "Title\nrest"), reply]
    assert state.transcript.messages_of_turn("s.t2") == [UserMessage("n", "n")]
    assert state.transcript.messages_of_turn("s.t9") is None
    state.transcript.compact(2, "summary")
    assert state.transcript.messages_of_turn(TURN) is None
    assert state.transcript.messages_of_turn("s.t2") == [UserMessage("n", "n")]


def test_the_token_count_of_a_transcript_is_updated_by_every_change() -> None:
    state = fold_records(Replied(turn=TURN, step=1, message=AssistantMessage("hello " * 100)))
    transcript = state.transcript
    assert transcript.tokens == estimate_total_tokens(transcript.messages) > 100
    transcript.compact(2, "summary")
    assert transcript.tokens == estimate_total_tokens(transcript.messages)
    transcript.rewind("")
    assert transcript.tokens == 0
