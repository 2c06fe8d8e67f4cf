"""The rule of the queue, as a table: what waits, what comes, what is written."""

import pytest

from hark.engine.session.decide import (
    Moment,
    on_answer,
    on_backlog,
    on_end,
    on_interrupt,
    on_load,
    on_queue_command,
    on_ready,
    on_say,
)
from hark.engine.session.state import SessionState
from hark.protocol.commands import Answer, Delivery, Edit, Interrupt, Move, QueueCommand, Say, Withdraw
from hark.protocol.messages import AssistantMessage, Call, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import (
    AnyRecord,
    CallEnded,
    CallStarted,
    Edited,
    Handled,
    Held,
    Moved,
    Progress,
    Queued,
    Refused,
    Released,
    Replied,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hark.protocol.rules import AfterStop

NOW = Moment(1.0, "s", 7)
TURN = "s.t1"
CUT, S, Q = Delivery.INTERRUPT, Delivery.STEER, Delivery.QUEUE


def state_of(queue: str = "", *, is_running: bool = False, is_held: bool = False) -> SessionState:
    """A state with a queue such as "i1 s2 q3": the letter is the delivery."""
    state = SessionState()
    if is_running:
        state.apply(TurnStarted(turn=TURN, messages=(UserMessage("m0", "go"),)))
    for name in queue.split():
        delivery = {"i": CUT, "s": S, "q": Q}[name[0]]
        turn = TURN if is_running else ""
        state.apply(Queued(message=UserMessage(name, name), delivery=delivery, turn=turn))
    if is_held:
        state.apply(Held())
    return state


def told(records: list[AnyRecord]) -> list[str]:
    """Records in short."""
    short: list[str] = []
    for record in records:
        match record:
            case TurnStarted():
                short.append("start " + "+".join(message.id for message in record.messages))
            case Queued():
                short.append(f"queue {record.message.id}" + (" first" if record.is_first else ""))
            case _:
                short.append(type(record).__name__.lower())
    return short


@pytest.mark.parametrize(
    ("state", "delivery", "is_stopped", "records"),
    [
        (state_of(), CUT, False, ["start n"]),
        (state_of(), S, False, ["start n"]),
        (state_of(), Q, False, ["start n"]),
        (state_of(), CUT, True, ["start n"]),
        (state_of(is_running=True), CUT, False, ["queue n first"]),
        (state_of(is_running=True), S, False, ["queue n"]),
        (state_of(is_running=True), Q, False, ["queue n"]),
        (state_of(is_running=True), CUT, True, ["queue n first", "held"]),
        (state_of(is_running=True), Q, True, ["queue n", "held"]),
        (state_of("q1", is_running=True, is_held=True), Q, True, ["queue n"]),
        (state_of("q1", is_running=True, is_held=True), Q, False, ["queue n", "released"]),
        (state_of("q1", is_held=True), CUT, False, ["queue n first", "released", "start n"]),
        (state_of("q1", is_held=True), Q, False, ["queue n", "released", "start q1"]),
        (state_of("s1", is_held=True), S, False, ["queue n", "released", "start s1+n"]),
        (state_of("q1", is_held=True), CUT, True, ["queue n first"]),
        (state_of(is_held=True), Q, False, ["released", "start n"]),
    ],
)
def test_a_message(state: SessionState, delivery: Delivery, is_stopped: bool, records: list[str]) -> None:
    assert told(on_say(state, Say("n", "new", delivery), NOW, is_stopped=is_stopped)) == records


def test_exactly_one_record_of_a_message_answers_its_inbox_entry() -> None:
    for state in (state_of(), state_of(is_running=True), state_of("q1", is_held=True)):
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
def test_what_starts_when_a_turn_ends(queue: str, messages: list[str]) -> None:
    end: list[AnyRecord] = [TurnEnded(turn=TURN, outcome=Completed(""))]
    assert told(on_end(state_of(queue, is_running=True), end, NOW)) == ["turnended", *messages]
    assert told(on_ready(state_of(queue), NOW)) == messages
    assert told(on_end(state_of(queue, is_running=True, is_held=True), end, NOW)) == ["turnended"]


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
def test_a_stop(queue: str, after_stop: AfterStop, turn: str, records: list[str]) -> None:
    state = state_of(queue, is_running=True)
    assert told(on_interrupt(state, Interrupt("i", "user", turn), after_stop, NOW)) == records


def test_a_stop_that_comes_when_nothing_runs_writes_nothing_unless_another_process_waits_for_the_answer() -> None:
    assert on_interrupt(state_of("q1"), Interrupt("i", "user", TURN), AfterStop.HOLD, Moment(1.0, "s")) == []
    assert told(on_interrupt(state_of("q1"), Interrupt("i", "user", TURN), AfterStop.HOLD, NOW)) == ["refused"]


def test_a_stop_that_hands_the_queue_back_keeps_the_texts() -> None:
    records = on_interrupt(state_of("q1", is_running=True), Interrupt("i", "user", TURN), AfterStop.EDIT, NOW)
    assert [record.text for record in records if isinstance(record, Withdrawn)] == ["q1"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Edit("c", "q1", "new"), Edited),
        (Move("c", "q1", 2), Moved),
        (Withdraw("c", "q1"), Withdrawn),
        (Edit("c", "m0", "new"), Refused),
        (Move("c", "gone", 1), Refused),
        (Withdraw("c", "gone"), Refused),
    ],
)
def test_a_change_of_the_queue(command: QueueCommand, kind: type[AnyRecord]) -> None:
    record = on_queue_command(state_of("q1 q2", is_running=True), command, NOW)
    assert isinstance(record, kind)
    assert record.inbox == 7


@pytest.mark.parametrize(("wished", "given"), [(-3, 1), (0, 1), (1, 1), (2, 2), (99, 2)])
def test_a_move_beyond_the_ends_goes_to_the_end(wished: int, given: int) -> None:
    record = on_queue_command(state_of("q1 q2"), Move("c", "q1", wished), NOW)
    assert isinstance(record, Moved)
    assert record.position == given


def test_a_backlog_waits_and_releases_what_was_held() -> None:
    assert told(on_backlog(state_of(), Say("n", "x", CUT), NOW)) == ["queue n first"]
    assert told(on_backlog(state_of("q1", is_held=True), Say("n", "x", Q), NOW)) == ["queue n", "released"]


def test_an_answer_to_a_closed_question_is_refused() -> None:
    assert isinstance(on_answer(Answer("a", "q", "yes"), NOW, is_open=False)[0], Refused)
    assert isinstance(on_answer(Answer("a", "q", "yes"), NOW, is_open=True)[0], Handled)


def test_an_open_turn_is_closed_as_crashed_with_what_is_known_of_its_calls() -> None:
    state = state_of(is_running=True)
    calls = (Call("c1", "pay"), Call("c2", "look"))
    state.apply(Replied(turn=TURN, step=1, message=AssistantMessage("", calls)))
    state.apply(CallStarted(turn=TURN, call="c1"))
    records = on_load(state, NOW)
    effects = {record.result.call: record.result.effect for record in records if isinstance(record, CallEnded)}
    assert effects == {"c1": Effect.UNKNOWN, "c2": Effect.NOT_STARTED}
    end = records[-1]
    assert isinstance(end, TurnEnded)
    assert end.outcome == Interrupted("crash")


def test_what_a_person_saw_before_a_crash_stays() -> None:
    state = state_of(is_running=True)
    state.apply(Progress(turn=TURN, step=1, text="some ", is_first=True))
    state.apply(Progress(turn=TURN, step=1, text="words"))
    replied = on_load(state, NOW)[0]
    assert isinstance(replied, Replied)
    assert replied.message == AssistantMessage("some words", is_partial=True)
    assert on_load(state_of("q1"), NOW) == []


def test_a_release_is_said_once() -> None:
    records = on_say(state_of("q1", is_held=True), Say("n", "x", Q), NOW)
    assert sum(isinstance(record, Released) for record in records) == 1
