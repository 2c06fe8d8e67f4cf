"""The queue rule as a table: the state, the command, and the resulting records."""

import pytest

from hark.engine.session.decide import (
    on_answer,
    on_backlog,
    on_end,
    on_interrupt,
    on_load,
    on_ready,
    on_say,
)
from hark.engine.session.decide_changes import on_queue_command
from hark.engine.session.decision_context import DecisionContext
from hark.engine.session.state import SessionState
from hark.protocol.commands import Answer, Delivery, Edit, Interrupt, Move, QueueCommand, Say, Withdraw
from hark.protocol.messages import AssistantMessage, Call, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    CommandHandled,
    CommandRefused,
    Edited,
    Moved,
    Queued,
    QueueHeld,
    QueueReleased,
    Replied,
    ReplyTextSaved,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.rules import AfterStop

NOW = DecisionContext(1.0, "s", 7)
TURN = "s.t1"
INTERRUPT, STEER, QUEUE = Delivery.INTERRUPT, Delivery.STEER, Delivery.QUEUE


def make_state(queue: str = "", *, is_running: bool = False, is_held: bool = False) -> SessionState:
    """Return a state with a queue such as "i1 s2 q3", where the letter is the delivery."""
    state = SessionState()
    if is_running:
        state.apply(TurnStarted(turn=TURN, messages=(UserMessage("m0", "go"),)))
    for name in queue.split():
        delivery = {"i": INTERRUPT, "s": STEER, "q": QUEUE}[name[0]]
        turn = TURN if is_running else ""
        state.apply(Queued(message=UserMessage(name, name), delivery=delivery, turn=turn))
    if is_held:
        state.apply(QueueHeld())
    return state


def describe_records(records: list[AnyRecord]) -> list[str]:
    """Return a short description of each record."""
    short: list[str] = []
    for record in records:
        match record:
            case TurnStarted():
                short.append("start " + "+".join(message.id for message in record.messages))
            case Queued():
                short.append(f"queue {record.message.id}" + (" first" if record.is_first else ""))
            case _:
                short.append(str(record.__struct_config__.tag))
    return short


@pytest.mark.parametrize(
    ("state", "delivery", "is_stopped", "records"),
    [
        (make_state(), INTERRUPT, False, ["start n"]),
        (make_state(), STEER, False, ["start n"]),
        (make_state(), QUEUE, False, ["start n"]),
        (make_state(), INTERRUPT, True, ["start n"]),
        (make_state(is_running=True), INTERRUPT, False, ["queue n first"]),
        (make_state(is_running=True), STEER, False, ["queue n first"]),
        (make_state(is_running=True), QUEUE, False, ["queue n"]),
        (make_state(is_running=True), INTERRUPT, True, ["queue n first", "held"]),
        (make_state(is_running=True), QUEUE, True, ["queue n", "held"]),
        (make_state("q1", is_running=True, is_held=True), QUEUE, True, ["queue n"]),
        (make_state("q1", is_running=True, is_held=True), QUEUE, False, ["queue n", "released"]),
        (make_state("q1", is_held=True), INTERRUPT, False, ["queue n first", "released", "start n"]),
        (make_state("q1", is_held=True), QUEUE, False, ["queue n", "released", "start q1"]),
        (make_state("s1", is_held=True), STEER, False, ["queue n", "released", "start s1+n"]),
        (make_state("q1", is_held=True), INTERRUPT, True, ["queue n first"]),
        (make_state(is_held=True), QUEUE, False, ["released", "start n"]),
    ],
)
def test_a_message_starts_a_turn_or_is_queued_depending_on_state_and_delivery(
    state: SessionState, delivery: Delivery, is_stopped: bool, records: list[str]
) -> None:
    assert describe_records(on_say(state, Say("n", "new", delivery), NOW, is_stopped=is_stopped)) == records


def test_exactly_one_record_for_a_message_refers_to_its_inbox_entry() -> None:
    for state in (make_state(), make_state(is_running=True), make_state("q1", is_held=True)):
        for delivery in Delivery:
            records = on_say(state, Say("n", "new", delivery), NOW)
            assert [record.inbox for record in records].count(7) == 1


@pytest.mark.parametrize(
    ("queue", "messages"),
    [
        ("", []),
        ("q1", ["start q1"]),
        ("q1 q2", ["start q1"]),
        ("q1 s2", ["start q1"]),
        ("i1 i2 q3", ["start i1+i2"]),
        ("s1 i2 s3 q4 s5", ["start s1+i2+s3"]),
    ],
)
def test_the_first_queued_messages_start_when_a_turn_ends_unless_held(queue: str, messages: list[str]) -> None:
    end: list[AnyRecord] = [TurnEnded(turn=TURN, outcome=Completed(""))]
    assert describe_records(on_end(make_state(queue, is_running=True), end, NOW)) == ["turn.ended", *messages]
    assert describe_records(on_ready(make_state(queue), NOW)) == messages
    assert describe_records(on_end(make_state(queue, is_running=True, is_held=True), end, NOW)) == ["turn.ended"]


@pytest.mark.parametrize(
    ("queue", "after_stop", "turn", "records"),
    [
        ("", AfterStop.HOLD, TURN, ["handled"]),
        ("q1 q2", AfterStop.HOLD, TURN, ["handled", "held"]),
        ("q1 q2", AfterStop.RUN, TURN, ["handled"]),
        ("q1 s2", AfterStop.EDIT, TURN, ["handled", "withdrawn", "withdrawn"]),
        ("q1", AfterStop.HOLD, "s.t0", ["refused"]),
        ("q1", AfterStop.HOLD, "", ["refused"]),
    ],
)
def test_the_after_stop_setting_decides_whether_a_stop_holds_runs_or_withdraws_the_queue(
    queue: str, after_stop: AfterStop, turn: str, records: list[str]
) -> None:
    state = make_state(queue, is_running=True)
    assert describe_records(on_interrupt(state, Interrupt("i", "user", turn), after_stop, NOW)) == records


def test_a_stop_without_a_running_turn_records_a_refusal_only_if_another_process_sent_it() -> None:
    assert on_interrupt(make_state("q1"), Interrupt("i", "user", TURN), AfterStop.HOLD, DecisionContext(1.0, "s")) == []
    assert describe_records(on_interrupt(make_state("q1"), Interrupt("i", "user", TURN), AfterStop.HOLD, NOW)) == [
        "refused"
    ]


def test_a_stop_that_withdraws_the_queue_records_the_withdrawn_texts() -> None:
    records = on_interrupt(make_state("q1", is_running=True), Interrupt("i", "user", TURN), AfterStop.EDIT, NOW)
    assert [record.text for record in records if isinstance(record, Withdrawn)] == ["q1"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Edit("c", "q1", "new"), Edited),
        (Move("c", "q1", 2), Moved),
        (Withdraw("c", "q1"), Withdrawn),
        (Edit("c", "m0", "new"), CommandRefused),
        (Move("c", "gone", 1), CommandRefused),
        (Withdraw("c", "gone"), CommandRefused),
    ],
)
def test_a_queue_command_changes_a_queued_message_and_is_refused_for_other_messages(
    command: QueueCommand, kind: type[AnyRecord]
) -> None:
    record = on_queue_command(make_state("q1 q2", is_running=True), command, NOW)
    assert isinstance(record, kind)
    assert record.inbox == 7


@pytest.mark.parametrize(("requested", "expected"), [(-3, 1), (0, 1), (1, 1), (2, 2), (99, 2)])
def test_a_move_beyond_the_ends_of_the_queue_is_clamped(requested: int, expected: int) -> None:
    record = on_queue_command(make_state("q1 q2"), Move("c", "q1", requested), NOW)
    assert isinstance(record, Moved)
    assert record.position == expected


def test_a_backlog_message_is_queued_and_releases_a_held_queue() -> None:
    assert describe_records(on_backlog(make_state(), Say("n", "x", INTERRUPT), NOW)) == ["queue n first"]
    assert describe_records(on_backlog(make_state("q1", is_held=True), Say("n", "x", QUEUE), NOW)) == [
        "queue n",
        "released",
    ]


def test_an_answer_to_a_closed_question_is_refused() -> None:
    assert isinstance(on_answer(Answer("a", "q", "yes"), NOW, is_open=False)[0], CommandRefused)
    assert isinstance(on_answer(Answer("a", "q", "yes"), NOW, is_open=True)[0], CommandHandled)


def test_loading_a_crashed_turn_closes_its_calls_as_unknown_or_not_started() -> None:
    state = make_state(is_running=True)
    calls = (Call("c1", "pay"), Call("c2", "look"))
    state.apply(Replied(turn=TURN, step=1, message=AssistantMessage("", calls)))
    state.apply(CallStarted(turn=TURN, call="c1"))
    records = on_load(state, NOW)
    effects = {record.result.call: record.result.effect for record in records if isinstance(record, CallEnded)}
    assert effects == {"c1": Effect.UNKNOWN, "c2": Effect.NOT_STARTED}
    end = records[-1]
    assert isinstance(end, TurnEnded)
    assert end.outcome == Interrupted("crash")


def test_loading_a_crashed_turn_keeps_the_saved_reply_text() -> None:
    state = make_state(is_running=True)
    state.apply(ReplyTextSaved(turn=TURN, step=1, text="some ", is_first=True))
    state.apply(ReplyTextSaved(turn=TURN, step=1, text="words"))
    replied = on_load(state, NOW)[0]
    assert isinstance(replied, Replied)
    assert replied.message == AssistantMessage("some words", is_partial=True)
    assert on_load(make_state("q1"), NOW) == []


def test_a_message_to_a_held_queue_writes_only_one_release_record() -> None:
    records = on_say(make_state("q1", is_held=True), Say("n", "x", QUEUE), NOW)
    assert sum(isinstance(record, QueueReleased) for record in records) == 1
