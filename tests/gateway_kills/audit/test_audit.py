"""The audit detects each kind of defect, tested on one chat with one answered message."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.records import AnyRecord, CallEnded, Queued, Replied, Steered, TurnEnded, TurnStarted, Withdrawn
from tests.crash.audit import AuditResults
from tests.gateway_kills.audit.chat_case import ChatCase, read_sent_messages
from tests.gateway_kills.audit.journal import JournalFacts
from tests.gateway_kills.audit.messages import MessageAudit
from tests.gateway_kills.audit.replies import ReplyAudit
from tests.gateway_kills.audit.stops import StopAudit
from tests.gateway_kills.expectations import Expectations, SteerAction, StopAction, UserAction, UserMessageRecord
from tests.gateway_kills.model import ModelRequest
from tests.gateway_kills.platforms.platform import VisibleMessage

CHAT = "telegram:7"
API = "api-7"
FIRST, SECOND = "telegram:7.t1", "telegram:7.t2"
MESSAGE = UserMessage("telegram:7::100", "talk m0")
WITHDRAWN = Withdrawn(message=MESSAGE.id, text="talk m0", reason="x")
QUEUED = Queued(message=MESSAGE, delivery=Delivery.QUEUE)


def turn_started(message: UserMessage = MESSAGE, turn: str = FIRST, at: float = 10.0) -> TurnStarted:
    return TurnStarted(turn=turn, messages=(message,), at=at)


def reply_record(turn: str = FIRST, text: str = "This is r0.") -> Replied:
    return Replied(turn=turn, step=1, message=AssistantMessage(text))


def turn_ended(turn: str = FIRST, at: float = 0.0) -> TurnEnded:
    return TurnEnded(turn=turn, outcome=Completed("This is r0."), at=at)


ANSWERED: tuple[AnyRecord, ...] = (turn_started(), reply_record(), turn_ended())
SENT = {f"{FIRST}:0": "101"}
SHOWN = (VisibleMessage("101", "This is r0."),)
NOTHING: tuple[AnyRecord, ...] = ()


def expectations(*, kind: str = "text", chat: str = CHAT) -> Expectations:
    result = Expectations()
    result.add_message(chat, kind, "talk").id = "100"
    return result


def expect_edit(at: float, accepted_at: float | None = None, *, chat: str = CHAT) -> Expectations:
    result = expectations(chat=chat)
    result.messages["m0"].edits.append(("talk m0e1", UserAction(at, at if accepted_at is None else accepted_at)))
    return result


def expect_deletion(at: float, *, kind: str = "text", chat: str = CHAT) -> Expectations:
    result = expectations(kind=kind, chat=chat)
    result.messages["m0"].deleted = UserAction(at, at)
    return result


def two_messages(**fields: str) -> Expectations:
    """Return two messages with the same fields."""
    result = Expectations()
    for number in ("100", "110"):
        one = result.add_message(CHAT, "text", "talk")
        one.id = number
        for name, value in fields.items():
            setattr(one, name, value)
    return result


def audit(
    records: Sequence[AnyRecord] = ANSWERED,
    shown: Sequence[VisibleMessage] = SHOWN,
    sent: Mapping[str, str] | None = None,
    expected: Expectations | None = None,
    prompt: Counter[str] | None = None,
    chat: str = CHAT,
    delivered: Mapping[str, int] | None = None,
) -> AuditResults:
    findings = AuditResults()
    sent = SENT if sent is None else sent
    case = ChatCase(
        findings, chat, expected or expectations(), JournalFacts(records), shown, sent, prompt, delivered or {FIRST: 1}
    )
    MessageAudit(case).run()
    ReplyAudit(case).run()
    return findings


# Correct behaviour.


def test_the_audit_accepts_an_answered_message() -> None:
    findings = audit(prompt=Counter({"m0": 1}))
    assert findings.problems == []
    assert (findings.counts["in a prompt"], findings.counts["replies delivered"]) == (1, 1)


def test_the_audit_accepts_queued_withdrawn_and_stopped_messages() -> None:
    assert audit([QUEUED], (), {}).problems == []
    assert audit([QUEUED, WITHDRAWN], (), {}, prompt=Counter()).problems == []
    told = VisibleMessage("9", "Hark restarted just as you answered “talk m0”")
    assert audit(NOTHING, [told], {"x": "9"}).problems == []
    stopped = VisibleMessage("9", "🎙️ Stopped. The voice message was not transcribed and was not sent.")
    assert audit(NOTHING, [stopped], {"voice:100": "9"}, expectations(kind="voice")).problems == []


def test_the_audit_accepts_a_resent_reply_with_the_possible_duplicate_marker() -> None:
    again = "(This may have reached you before.)\nThis is r0."
    shown = [VisibleMessage("99", "This is r0. ▌", ("⏹ Stop",)), VisibleMessage("101", again)]
    assert audit(shown=shown).problems == []


def test_the_audit_accepts_a_reply_in_several_messages() -> None:
    records = (turn_started(), reply_record(text="This is r0. one two three"), turn_ended())
    shown = [VisibleMessage("101", "This is r0. one"), VisibleMessage("102", "two three")]
    assert audit(records, shown, {**SENT, f"{FIRST}:1": "102"}).problems == []


def test_the_audit_accepts_a_recording_that_its_author_deleted_before_transcription() -> None:
    assert audit(NOTHING, (), {}, expect_deletion(1.0, kind="voice")).problems == []


def test_the_audit_accepts_a_recording_that_was_echoed_and_delivered() -> None:
    shown = (*SHOWN, VisibleMessage("90", '🎙️ "talk m0"'))
    assert audit(ANSWERED, shown, {**SENT, "voice:100": "90"}, expectations(kind="voice")).problems == []


# Defects in the journal or in the chat.


@pytest.mark.parametrize(
    ("kind", "records", "shown", "sent"),
    [
        ("lost", NOTHING, (), {}),
        ("doubled", (*ANSWERED, turn_started(turn=SECOND), turn_ended(SECOND)), SHOWN, SENT),
        ("doubled", (*ANSWERED, Steered(turn=FIRST, step=2, messages=(MESSAGE,))), SHOWN, SENT),
        ("doubled", (*ANSWERED, QUEUED), SHOWN, SENT),
        (
            "doubled",
            (*ANSWERED, CallEnded(turn=FIRST, result=CallResult("c", "ask", "talk m0", Effect.COMPLETED))),
            SHOWN,
            SENT,
        ),
        ("invented", (turn_started(UserMessage("x", "talk m0 m9")), reply_record(), turn_ended()), SHOWN, SENT),
        ("another text", (turn_started(UserMessage("x", "shout m0")), reply_record(), turn_ended()), SHOWN, SENT),
        ("open turn", (turn_started(), reply_record()), SHOWN, SENT),
        ("turn ended twice", (*ANSWERED, turn_ended()), SHOWN, SENT),
        ("reply lost", ANSWERED, (), {}),
        ("reply lost", ANSWERED, (), SENT),
        ("reply lost", ANSWERED, (VisibleMessage("101", "This is r5."),), SENT),
        ("reply lost", (turn_started(), reply_record(text="This is r0. one two"), turn_ended()), SHOWN, SENT),
        ("reply not finished", ANSWERED, (VisibleMessage("101", "This is r0. ▌"),), SENT),
        ("reply not finished", ANSWERED, (VisibleMessage("101", "This is r0.", ("⏹ Stop",)),), SENT),
        (
            "reply not finished",
            (turn_started(), reply_record(), TurnEnded(turn=FIRST, outcome=Interrupted("user"))),
            SHOWN,
            SENT,
        ),
        ("doubled silently", ANSWERED, (*SHOWN, VisibleMessage("102", "This is r0.")), SENT),
        ("doubled silently", ANSWERED, (*SHOWN, VisibleMessage("102", "This is r0.")), {**SENT, "x": "102"}),
        ("doubled silently", ANSWERED, (*SHOWN, VisibleMessage("99", "▌")), SENT),
        (
            "doubled silently",  # a labelled repetition of another message doesn't excuse it
            ANSWERED,
            (
                *SHOWN,
                VisibleMessage("99", "This is r0. ▌"),
                VisibleMessage("90", "(This may have reached you before.)\nHello"),
            ),
            {**SENT, "x": "90"},
        ),
        (
            "note doubled",
            ANSWERED,
            (*SHOWN, VisibleMessage("5", "🎙️ m0"), VisibleMessage("6", "🎙️ m0")),
            {"a": "5", "b": "6"},
        ),
        (
            "reply out of order",
            (*ANSWERED, turn_started(UserMessage("y", ""), SECOND), turn_ended(SECOND)),
            (VisibleMessage("101", "This is r0."), VisibleMessage("99", "(no text)")),
            {**SENT, f"{SECOND}:0": "99"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_audit_detects_each_defect(
    kind: str, records: Sequence[AnyRecord], shown: Sequence[VisibleMessage], sent: Mapping[str, str]
) -> None:
    findings = audit(records, shown, sent)
    assert findings.counts[kind] > 0, findings.problems


@pytest.mark.parametrize(("times", "kind"), [(0, "reply lost"), (2, "doubled silently")])
def test_the_audit_detects_a_turn_end_that_a_program_did_not_receive_exactly_once(times: int, kind: str) -> None:
    assert audit(expected=expectations(chat=API), chat=API).problems == []
    assert audit(expected=expectations(chat=API), chat=API, delivered={FIRST: times}).counts[kind] == 1


# Recordings.


def test_the_audit_detects_a_recording_that_was_echoed_but_not_delivered() -> None:
    echoed = VisibleMessage("9", '🎙️ "talk m0"')
    assert audit(NOTHING, [echoed], {"voice:100": "9"}, expectations(kind="voice")).counts["lost"] == 1


@pytest.mark.parametrize("kind", ["voice", "noise", "silence"])
def test_the_audit_detects_a_lost_recording_although_another_was_reported_as_stopped(kind: str) -> None:
    stopped = VisibleMessage("9", "🎙️ Stopped. The voice message was not transcribed and was not sent.")
    assert audit(NOTHING, [stopped], {"voice:99": "9"}, expectations(kind=kind)).counts["lost"] == 1


def test_the_audit_detects_a_delivered_recording_without_an_echo() -> None:
    assert audit(expected=expectations(kind="voice")).counts["echo lost"] == 1
    wrong = (*SHOWN, VisibleMessage("90", '🎙️ "talk m8"'))
    assert audit(ANSWERED, wrong, {**SENT, "voice:100": "90"}, expectations(kind="voice")).counts["echo lost"] == 1


def test_the_audit_detects_a_recording_without_speech_and_without_a_notice() -> None:
    records = (turn_started(UserMessage(MESSAGE.id, "[A voice message could not be transcribed]")), *ANSWERED[1:])
    assert audit(records, expected=expectations(kind="noise")).counts["echo lost"] == 1
    told = {**SENT, "voice:100": "90"}
    assert (
        audit(records, (*SHOWN, VisibleMessage("90", "🎙️ that is no speech")), told, expectations(kind="noise")).problems
        == []
    )


# Edits and deletions.


def test_the_audit_detects_an_edit_that_was_accepted_in_time_but_not_applied() -> None:
    assert audit(expected=expect_edit(1.0)).counts["edit lost"] == 1
    assert audit(expected=expect_edit(11.0)).problems == []


def test_the_audit_detects_a_missing_edit_even_when_a_later_edit_arrived_too_late() -> None:
    of = expect_edit(1.0)
    of.messages["m0"].edits.append(("talk m0e2", UserAction(20.0, 20.0)))
    assert audit(expected=of).counts["edit lost"] == 1


def test_an_edit_is_not_reported_as_lost_if_a_button_for_that_edit_was_offered() -> None:
    mark, other = (f"{zlib.crc32(text.encode()):x}" for text in ("talk m0e1", "talk m5e1"))
    assert audit(sent={**SENT, f"edit:100:{mark}": "90"}, expected=expect_edit(1.0)).counts["edit lost"] == 0
    assert audit(sent={**SENT, f"edit:105:{other}": "90"}, expected=expect_edit(1.0)).counts["edit lost"] == 1


def test_an_acknowledged_edit_over_http_must_be_applied() -> None:
    assert audit(expected=expect_edit(9.9, chat=API), chat=API).counts["edit lost"] == 1


def test_the_audit_detects_a_deletion_that_was_accepted_in_time_but_ignored() -> None:
    assert audit(expected=expect_deletion(1.0)).counts["deletion ignored"] == 1
    assert audit(expected=expect_deletion(11.0)).problems == []
    assert audit([QUEUED], (), {}, expect_deletion(11.0)).counts["deletion ignored"] == 1
    assert audit(expected=expect_deletion(9.9, chat=API), chat=API).counts["deletion ignored"] == 1


def test_a_message_deleted_over_http_must_still_have_a_record() -> None:
    assert audit(NOTHING, (), {}, expect_deletion(1.0, chat=API), chat=API).counts["lost"] == 1


# Buttons, order, authors, prompts.


def with_pressed_buttons(expected: Expectations, *messages: str) -> Expectations:
    expected.steers += [SteerAction(CHAT, message, UserAction(1.0, 1.0)) for message in messages]
    return expected


def test_the_audit_detects_a_steer_by_button_that_was_lost_or_delivered_twice() -> None:
    told = turn_started(UserMessage("~telegram:7::edit:100:ab", "talk m0e1"), SECOND, 20.0)
    again = Steered(turn=SECOND, step=2, messages=told.messages)
    records = (*ANSWERED, told, turn_ended(SECOND))
    shown, sent = (*SHOWN, VisibleMessage("102", "(no text)")), {**SENT, f"{SECOND}:0": "102"}
    assert audit(records, shown, sent, with_pressed_buttons(expect_edit(11.0), "90")).problems == []
    assert audit(expected=with_pressed_buttons(expect_edit(11.0), "90")).counts["steer lost"] == 1
    assert audit((*records, again), shown, sent, with_pressed_buttons(expect_edit(11.0), "90")).counts["doubled"] == 1
    assert audit(records, shown, sent, expect_edit(11.0)).counts["doubled"] == 1


def test_the_audit_detects_queued_messages_in_the_wrong_order() -> None:
    first, second = UserMessage("x:100", "talk m0"), UserMessage("x:110", "talk m1")
    wrong = (turn_started(second), turn_ended(), turn_started(first, SECOND), turn_ended(SECOND))
    right = (turn_started(first), turn_ended(), turn_started(second, SECOND), turn_ended(SECOND))
    assert audit(wrong, expected=two_messages(delivery="queue")).counts["out of order"] == 1
    assert audit(right, expected=two_messages(delivery="queue")).counts["out of order"] == 0


def test_the_audit_detects_a_wrong_author_and_a_message_not_addressed_to_the_bot() -> None:
    of = expectations()
    of.messages["m0"].author = "Ann"
    assert audit(expected=of).counts["wrong author"] == 1
    assert audit(expected=expectations(kind="aside")).counts["overheard"] == 1
    assert audit(NOTHING, (), {}, expectations(kind="aside")).problems == []


@pytest.mark.parametrize("times", [0, 2])
def test_the_audit_detects_a_message_that_the_model_did_not_receive_exactly_once(times: int) -> None:
    assert audit(prompt=Counter({"m0": times})).counts["wrong prompt"] == 1


def test_the_audit_detects_a_withdrawn_message_that_the_model_received() -> None:
    assert audit([QUEUED, WITHDRAWN], (), {}, prompt=Counter({"m0": 1})).counts["wrong prompt"] == 1


def test_the_audit_detects_a_message_that_is_still_queued_at_the_end() -> None:
    assert audit([QUEUED], (), {}, prompt=Counter()).counts["still queued"] == 1


# Stops.


def audit_stop(records: Sequence[AnyRecord], requests: Sequence[ModelRequest]) -> AuditResults:
    findings = AuditResults()
    stops = Expectations(stops=[StopAction(CHAT, "word", UserAction(20.0, 20.5))])
    StopAudit(ChatCase(findings, CHAT, stops, JournalFacts(records), SHOWN, SENT), requests).run()
    return findings


def test_the_audit_detects_an_accepted_stop_that_did_not_stop_the_model() -> None:
    for ended_at, outcome, lost in ((20.6, Interrupted("user"), 0), (30.0, Completed("This is r0."), 1)):
        records = [turn_started(), reply_record(), TurnEnded(turn=FIRST, outcome=outcome)]
        asked = ModelRequest("r0", CHAT, 10.0, ended=ended_at, is_complete=bool(lost))
        assert audit_stop(records, [asked]).counts["stop lost"] == lost


def test_the_audit_detects_a_stop_that_did_not_end_a_turn_with_a_running_tool_or_an_open_question() -> None:
    assert audit_stop([turn_started(), turn_ended(at=30.0)], []).counts["stop lost"] == 1
    assert audit_stop([turn_started(), turn_ended(at=20.6)], []).problems == []


def test_sent_messages_are_read_from_the_ledger_by_session() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE lines (address, session); CREATE TABLE sent (address, key, message);"
        "INSERT INTO lines VALUES ('a', 'telegram:7'); INSERT INTO sent VALUES ('a', 'telegram:7.t1:0', '101');"
    )
    assert read_sent_messages(connection) == {CHAT: SENT}


def test_a_queued_message_is_typed_as_a_slash_command_if_the_platform_has_commands() -> None:
    one = UserMessageRecord("m0", CHAT, "queue", "talk m0", UserAction(1.0))
    assert one.as_sent(one.text, has_commands=True) == "/queue talk m0"
    assert one.as_sent(one.text, has_commands=False) == "talk m0"
